// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// serviceAccountUser is the prefix of the user name of a service account.
const serviceAccountUser = "system:serviceaccount:"

// Access asks the API server about the rights of a controller.
type Access struct {
	Client  *kubeapi.Client
	Dynamic dynamic.Interface
	// User is the user to impersonate; empty for the process's own user.
	User string
}

// Check asks the API server whether the watches are allowed, so that a missing right is
// reported at once, with the rule that would grant it.
func (a *Access) Check(ctx context.Context, kind Watched, watches ...Watched) error {
	if err := a.checkImpersonation(ctx, kind); err != nil {
		return err
	}
	var kinds []kubeapi.WatchedKind
	for _, k := range watches {
		if !k.Watch.Optional { // an optional watch reports its own denial
			kinds = append(kinds, kubeapi.WatchedKind{Kind: k.Kind, Namespaces: k.Watch.Namespaces, Name: k.needs().Name})
		}
	}
	if missing := a.Client.CheckWatch(ctx, kinds...); len(missing) > 0 {
		return failure.Denied.Wrap(missingError(missing))
	}
	return nil
}

// checkImpersonation returns an error if the process may not impersonate the user, because
// the refusal of a watch would only name the watch. The text of the refusal is the only
// indication: the details of constrained impersonation name the request, not the user.
func (a *Access) checkImpersonation(ctx context.Context, kind Watched) error {
	user := a.User
	if user == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	ns := ""
	if len(kind.Watch.Namespaces) > 0 {
		ns = kind.Watch.Namespaces[0]
	}
	_, err := a.Dynamic.Resource(kind.GVR()).Namespace(ns).List(ctx, metav1.ListOptions{Limit: 1})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot impersonate") {
		return nil // the watches report all other errors
	}
	return failure.Denied.Wrap(fmt.Errorf("user %s: wasmctl's own user cannot impersonate it (%w); give that user this RBAC rule:\n\n%s",
		user, err, strings.TrimSpace(kubeapi.RBACRules([]kubeapi.MissingRight{impersonation(user)}))))
}

// impersonation returns the right to impersonate a user.
func impersonation(user string) kubeapi.MissingRight {
	right := kubeapi.MissingRight{Resource: "users", Name: user, Verbs: []string{"impersonate"}}
	if account, ok := strings.CutPrefix(user, serviceAccountUser); ok {
		right.Resource = "serviceaccounts"
		right.Namespace, right.Name, _ = strings.Cut(account, ":")
	}
	return right
}

// Refused returns an error that lists the rights that the module of a plan may need later
// but the API server denies, or nil if there are none. Requests that need these rights will
// fail.
func (a *Access) Refused(ctx context.Context, kind Watched, p *Plan) error {
	var needs []kubeapi.Access
	if p.Manifest.Finalizer != "" {
		needs = append(needs, kubeapi.FinalizerAccess(kind.Kind, kind.Watch.Namespaces))
	}
	for i := range p.Granted {
		needs = append(needs, kubeapi.CapabilityAccess(&p.Granted[i])...)
	}
	if missing := a.Client.CheckAccess(ctx, needs...); len(missing) > 0 {
		return missingError(missing)
	}
	return nil
}

func missingError(missing []kubeapi.MissingRight) error {
	what := make([]string, len(missing))
	for i, m := range missing {
		what[i] = m.String()
	}
	return fmt.Errorf("this user cannot %s; give it these RBAC rules (wasmctl rbac prints all that the module needs):\n\n%s",
		strings.Join(what, ", nor "), strings.TrimSpace(kubeapi.RBACRules(missing)))
}

// CheckSelectors lists one object for each watch with a selector, so that an invalid
// selector is reported at once. Field selectors are not checked elsewhere, and the watch
// would fail forever.
func (a *Access) CheckSelectors(ctx context.Context, watches ...Watched) error {
	for _, k := range watches {
		if k.Watch.LabelSelector == "" && k.Watch.FieldSelector == "" {
			continue
		}
		ns := metav1.NamespaceAll
		if len(k.Watch.Namespaces) > 0 {
			ns = k.Watch.Namespaces[0] // listing other namespaces may be forbidden
		}
		_, err := a.Dynamic.Resource(k.GVR()).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: k.Watch.LabelSelector, FieldSelector: k.Watch.FieldSelector, Limit: 1})
		if apierrors.IsBadRequest(err) {
			return failure.Usage.Wrap(fmt.Errorf("selector of %s: %w", k.Name(), err))
		}
		// The watch reports all other errors, and waits.
	}
	return nil
}
