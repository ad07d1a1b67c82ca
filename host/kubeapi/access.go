package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// checkTimeout bounds a CheckWatch: an API server that hangs must not hold up
// the start.
const checkTimeout = 10 * time.Second

// WatchedKind is a kind and where it is watched.
type WatchedKind struct {
	Kind Kind
	// Namespaces is empty for all, and for a cluster-scoped kind.
	Namespaces []string
}

// MissingRight is a right that the API server does not give us.
type MissingRight struct {
	Group, Resource string
	// Namespace is empty for all namespaces.
	Namespace string
	Verbs     []string
}

// String returns what is missing for people: "list, watch configmaps in
// namespace a".
func (m MissingRight) String() string {
	s := strings.Join(m.Verbs, ", ") + " " + groupResource(m.Group, m.Resource)
	if m.Namespace != "" {
		s += " in namespace " + m.Namespace
	}
	return s
}

// RBACRules returns what is missing as rules to be pasted into a ClusterRole,
// or, for a namespace, into a Role there. Each is preceded by a comment that
// says which. It is empty if nothing is missing.
func RBACRules(missing []MissingRight) string {
	var b strings.Builder
	for _, m := range missing {
		if m.Namespace == "" {
			b.WriteString("# in a ClusterRole\n")
		} else {
			b.WriteString("# in a Role in namespace " + m.Namespace + "\n")
		}
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%q]\n  verbs: [%s]\n", m.Group, m.Resource, quoted(m.Verbs))
	}
	return b.String()
}

func quoted(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(q, ", ")
}

// CheckWatch asks the API server whether we may list and watch kinds, and
// returns the rights that are missing, in the order of kinds. It is a service
// to people at start: where the API server does not let us ask, or does not
// answer within ten seconds, it says nothing is missing, and the watch itself will tell.
func (c *Client) CheckWatch(ctx context.Context, kinds ...WatchedKind) []MissingRight {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var missing []MissingRight
	for _, w := range kinds {
		namespaces := w.Namespaces
		if len(namespaces) == 0 || !w.Kind.Namespaced {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			m := MissingRight{Group: w.Kind.Group, Resource: w.Kind.Resource, Namespace: ns}
			for _, verb := range []string{VerbList, VerbWatch} {
				allowed, err := c.mayI(ctx, &authorizationv1.ResourceAttributes{
					Verb: verb, Group: w.Kind.Group, Version: w.Kind.Version, Resource: w.Kind.Resource, Namespace: ns,
				})
				if err == nil && !allowed {
					m.Verbs = append(m.Verbs, verb)
				}
			}
			if len(m.Verbs) > 0 && !slices.ContainsFunc(missing, m.equal) {
				missing = append(missing, m)
			}
		}
	}
	return missing
}

func (m MissingRight) equal(other MissingRight) bool {
	return m.Group == other.Group && m.Resource == other.Resource && m.Namespace == other.Namespace
}

// mayI asks for one right of ours.
func (c *Client) mayI(ctx context.Context, attributes *authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	body, err := json.Marshal(&review)
	if err != nil {
		return false, err
	}
	result := c.rest.Post().AbsPath("apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body).Do(quiet(ctx))
	if err := result.Error(); err != nil {
		return false, c.unavailable("access review", err)
	}
	js, err := result.Raw()
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(js, &review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
