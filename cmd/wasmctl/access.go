package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// checkAccess asks the API server whether the watches are allowed, so that a
// missing right is said at once, with the rule that would give it.
func (s *session) checkAccess(ctx context.Context, watches []watched) error {
	if err := s.checkImpersonation(ctx); err != nil {
		return err
	}
	var kinds []kubeapi.WatchedKind
	for _, k := range watches {
		if !k.watch.Optional { // else its watch says for itself that it is denied
			kinds = append(kinds, kubeapi.WatchedKind{Kind: k.Kind, Namespaces: k.watch.Namespaces, Name: k.needs().Name})
		}
	}
	if missing := s.client.CheckWatch(ctx, kinds...); len(missing) > 0 {
		return withCode(exitDenied, missingError(missing))
	}
	return nil
}

// checkImpersonation tries whether requests may be sent as the user of --as:
// what the API server says of a watch that may not be is about the watch.
func (s *session) checkImpersonation(ctx context.Context) error {
	user := s.opts.rights.as
	if user == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	ns := ""
	if len(s.kind.watch.Namespaces) > 0 {
		ns = s.kind.watch.Namespaces[0]
	}
	_, err := s.dynamic.Resource(s.kind.GVR()).Namespace(ns).List(ctx, metav1.ListOptions{Limit: 1})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot impersonate") {
		return nil // whatever else is wrong, the watches will say
	}
	return withCode(exitDenied, fmt.Errorf("--as %s: the API server does not let wasmctl's own user impersonate it (%w); give that user this RBAC rule:\n\n%s",
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

// warnAccess says which rights the API server does not give us that the module
// may need one day: each use of them will be refused.
func (s *session) warnAccess(ctx context.Context) {
	var needs []kubeapi.Access
	if s.plan.manifest.Finalizer != "" {
		needs = append(needs, kubeapi.FinalizerAccess(s.kind.Kind, s.kind.watch.Namespaces))
	}
	for i := range s.plan.may {
		needs = append(needs, kubeapi.CapabilityAccess(&s.plan.may[i])...)
	}
	if missing := s.client.CheckAccess(ctx, needs...); len(missing) > 0 {
		s.log.Warn("the module may ask for more than the API server allows", "reason", missingError(missing).Error(), "controller", s.name)
	}
}

func missingError(missing []kubeapi.MissingRight) error {
	what := make([]string, len(missing))
	for i, m := range missing {
		what[i] = m.String()
	}
	return fmt.Errorf("the API server does not let this user %s; give it these RBAC rules:\n\n%s",
		strings.Join(what, ", nor "), strings.TrimSpace(kubeapi.RBACRules(missing)))
}

// checkSelectors asks the API server for one object of each selected watch, so
// that a selector that it does not take is said at once: a field selector is
// checked by nobody else, and its watch would fail for ever.
func (s *session) checkSelectors(ctx context.Context, watches []watched) error {
	for _, k := range watches {
		if k.watch.LabelSelector == "" && k.watch.FieldSelector == "" {
			continue
		}
		_, err := s.dynamic.Resource(k.GVR()).List(ctx, metav1.ListOptions{LabelSelector: k.watch.LabelSelector, FieldSelector: k.watch.FieldSelector, Limit: 1})
		if apierrors.IsBadRequest(err) {
			return withCode(exitUsage, fmt.Errorf("selector of %s: %w", k.Name(), err))
		}
		// Whatever else is wrong, the watch will say, and wait.
	}
	return nil
}

// watchedKinds returns the kind that is reconciled and the related ones.
func (s *session) watchedKinds(p *plan) []watched { return append([]watched{s.kind}, p.related...) }
