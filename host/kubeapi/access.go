// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// checkTimeout limits a CheckWatch, so that an API server that hangs does not delay the start.
const checkTimeout = 10 * time.Second

// WatchedKind is a kind and the namespaces in which it is watched.
type WatchedKind struct {
	Kind kinds.Kind
	// If Namespaces is empty, all are watched. It is also empty for a cluster-scoped kind.
	Namespaces []string
	// Name is the only name that the watch's field selector matches. If empty, any name matches.
	Name string
}

// Access is a set of rights that the host needs for one resource.
type Access struct {
	// Group is empty for the core group. Resource is the plural. Subresource is empty for the
	// object itself.
	Group, Resource, Subresource string
	// If Namespaces is empty, it means all. It is also empty for a cluster-scoped resource.
	Namespaces []string
	// If Names is empty, it means any. RBAC cannot limit creation to names, so for the creation of
	// an object they are ignored.
	Names []string
	Verbs []string
}

// WatchAccess returns the rights that the watch of a kind needs.
func WatchAccess(w WatchedKind) Access {
	a := accessTo(w.Kind, w.Namespaces, VerbList, VerbWatch)
	if w.Name != "" {
		a.Names = []string{w.Name}
	}
	return a
}

// FinalizerAccess returns the rights to add and remove a finalizer.
func FinalizerAccess(kind kinds.Kind, namespaces []string) Access {
	return accessTo(kind, namespaces, VerbPatch)
}

// CapabilityAccess returns the rights that a capability of a manifest needs, so that the API server
// does not refuse a permitted request: its verbs on its resource, or on each of its subresources.
// "*" is every verb of a Policy. The capabilities also cover declared children (patch and create),
// their pruning (delete) and events (create and patch events.events.k8s.io), because a module needs
// capabilities for these.
func CapabilityAccess(c *abi.Capability) []Access {
	var needs []Access
	for _, sub := range OrAny(c.Subresources) {
		needs = append(needs, Access{
			Group: c.Group, Resource: c.Resource, Subresource: sub, Namespaces: c.Namespaces, Names: c.Names, Verbs: SpellOut(c.Verbs),
		})
	}
	return needs
}

func accessTo(k kinds.Kind, namespaces []string, verbs ...string) Access {
	if !k.Namespaced {
		namespaces = nil
	}
	return Access{Group: k.Group, Resource: k.Resource, Namespaces: namespaces, Verbs: verbs}
}

// MissingRight is a right that the API server does not grant to this process.
type MissingRight struct {
	// Subresource is empty for the object itself.
	Group, Resource, Subresource string
	// Namespace is empty if the right is missing in all namespaces.
	Namespace string
	// Name is empty if the right is missing for all names.
	Name  string
	Verbs []string
}

// String returns the missing right as text for people: "list, watch configmaps in namespace a".
func (m MissingRight) String() string {
	s := strings.Join(m.Verbs, ", ") + " " + resourceName(m.Group, m.Resource, m.Subresource)
	if m.Name != "" {
		s += " " + m.Name
	}
	if m.Namespace != "" {
		s += " in namespace " + m.Namespace
	}
	return s
}

// RBACRules returns the missing rights as rules for a ClusterRole or, if they have a namespace, for
// a Role in it. A comment before each rule names the kind of role. The result is empty if nothing
// is missing.
func RBACRules(missing []MissingRight) string {
	var b strings.Builder
	for _, m := range missing {
		if m.Namespace == "" {
			b.WriteString("# in a ClusterRole\n")
		} else {
			b.WriteString("# in a Role in namespace " + m.Namespace + "\n")
		}
		verbs := strings.ReplaceAll(fmt.Sprintf("%q", m.Verbs), " ", ", ")
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%q]\n  verbs: %s\n", m.Group, resourceName("", m.Resource, m.Subresource), verbs)
		if m.Name != "" {
			fmt.Fprintf(&b, "  resourceNames: [%q]\n", m.Name)
		}
	}
	return b.String()
}

// resourceName returns the name of a resource: "deployments.apps", "deployments.apps/scale".
func resourceName(group, resource, subresource string) string {
	return strings.TrimSuffix(schema.GroupResource{Group: group, Resource: resource}.String()+"/"+subresource, "/")
}

// OrAny returns a list of a rule. For an empty list, which means any, it returns a list of "".
func OrAny(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// CheckWatch is CheckAccess for watches.
func (c *Client) CheckWatch(ctx context.Context, kinds ...WatchedKind) []MissingRight {
	needs := make([]Access, len(kinds))
	for i, k := range kinds {
		needs[i] = WatchAccess(k)
	}
	return c.CheckAccess(ctx, needs...)
}

// CheckAccess asks the API server whether this process has the rights, and returns the missing
// ones, in the order of needs. Those of one resource in one namespace are joined. It helps users at
// start. If the API server denies the review or does not answer within ten seconds, CheckAccess
// reports nothing as missing, and the request itself fails later.
func (c *Client) CheckAccess(ctx context.Context, needs ...Access) []MissingRight {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var missing []MissingRight
	asked := map[authorizationv1.ResourceAttributes]bool{}
	places := map[authorizationv1.ResourceAttributes]int{} // in missing, independent of the verb
	for i := range needs {
		for _, a := range needs[i].attributes() {
			if asked[a] {
				continue
			}
			asked[a] = true
			if allowed, err := c.mayI(ctx, &a); err != nil || allowed {
				continue
			}
			verb := a.Verb
			a.Verb = ""
			place, known := places[a]
			if !known {
				place = len(missing)
				places[a] = place
				missing = append(missing, MissingRight{Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name})
			}
			missing[place].Verbs = append(missing[place].Verbs, verb)
		}
	}
	return missing
}

// HasAccess reports whether the API server confirms that this process has the rights.
func (c *Client) HasAccess(ctx context.Context, need Access) bool {
	for _, a := range need.attributes() {
		if allowed, err := c.mayI(ctx, &a); err != nil || !allowed {
			return false
		}
	}
	return true
}

// attributes returns the accesses to review.
func (n *Access) attributes() []authorizationv1.ResourceAttributes {
	var list []authorizationv1.ResourceAttributes
	for _, ns := range OrAny(n.Namespaces) {
		for _, name := range OrAny(n.Names) {
			for _, verb := range n.Verbs {
				a := authorizationv1.ResourceAttributes{
					Verb: verb, Group: n.Group, Resource: n.Resource, Subresource: n.Subresource, Namespace: ns, Name: name,
				}
				if verb == VerbCreate && n.Subresource == "" {
					a.Name = ""
				}
				list = append(list, a)
			}
		}
	}
	return list
}

// mayI asks whether this process has one right.
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
	js, _ := result.Raw() // result has the error too
	err = json.Unmarshal(js, &review)
	return review.Status.Allowed, err
}
