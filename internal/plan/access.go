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

// serviceAccountUser is what the user name of a service account begins with.
const serviceAccountUser = "system:serviceaccount:"

// Access asks the API server what a controller may do there.
type Access struct {
	Client  *kubeapi.Client
	Dynamic dynamic.Interface
	// User is whom requests are sent as; empty for the process itself.
	User string
}

// Check asks the API server whether the watches are allowed, so that a
// missing right is said at once, with the rule that would give it.
func (a *Access) Check(ctx context.Context, kind Watched, watches ...Watched) error {
	if err := a.checkImpersonation(ctx, kind); err != nil {
		return err
	}
	var kinds []kubeapi.WatchedKind
	for _, k := range watches {
		if !k.Watch.Optional { // else its watch says for itself that it is denied
			kinds = append(kinds, kubeapi.WatchedKind{Kind: k.Kind, Namespaces: k.Watch.Namespaces, Name: k.needs().Name})
		}
	}
	if missing := a.Client.CheckWatch(ctx, kinds...); len(missing) > 0 {
		return failure.Denied.Wrap(missingError(missing))
	}
	return nil
}

// checkImpersonation reports whether requests may be sent as the user of --as: the
// refusal of a watch would only name the watch. The text of the refusal is the only
// sign: the details of constrained impersonation name the request, not the user.
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
		return nil // whatever else is wrong, the watches will say
	}
	return failure.Denied.Wrap(fmt.Errorf("user %s: wasmctl's own user cannot impersonate it (%w); give that user this RBAC rule:\n\n%s",
		user, err, strings.TrimSpace(kubeapi.RBACRules([]kubeapi.MissingRight{impersonation(user)}))))
}

// impersonation is the right to send requests as a user.
func impersonation(user string) kubeapi.MissingRight {
	right := kubeapi.MissingRight{Resource: "users", Name: user, Verbs: []string{"impersonate"}}
	if account, ok := strings.CutPrefix(user, serviceAccountUser); ok {
		right.Resource = "serviceaccounts"
		right.Namespace, right.Name, _ = strings.Cut(account, ":")
	}
	return right
}

// Refused returns an error that names the rights that the module of a plan may
// need one day and the API server does not give; nil where it gives all. Each use
// of them will be refused.
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

// CheckSelectors asks the API server for one object of each selected watch, so
// that an invalid selector is reported at once: field selectors are not checked
// elsewhere, and the watch would fail forever.
func (a *Access) CheckSelectors(ctx context.Context, watches ...Watched) error {
	for _, k := range watches {
		if k.Watch.LabelSelector == "" && k.Watch.FieldSelector == "" {
			continue
		}
		ns := metav1.NamespaceAll
		if len(k.Watch.Namespaces) > 0 {
			ns = k.Watch.Namespaces[0] // it may be that nothing else may be listed
		}
		_, err := a.Dynamic.Resource(k.GVR()).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: k.Watch.LabelSelector, FieldSelector: k.Watch.FieldSelector, Limit: 1})
		if apierrors.IsBadRequest(err) {
			return failure.Usage.Wrap(fmt.Errorf("selector of %s: %w", k.Name(), err))
		}
		// Whatever else is wrong, the watch will say, and wait.
	}
	return nil
}
