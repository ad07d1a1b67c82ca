package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// checkAccess asks the API server whether the watches are allowed, so that a
// missing right is said at once, with the rule that would give it.
func (s *session) checkAccess(ctx context.Context) error {
	watched := []kubeapi.WatchedKind{{Kind: s.kind, Namespaces: s.namespaces()}}
	for _, k := range s.owns {
		if k.watch.Optional {
			continue // its watch says for itself that it is denied
		}
		watched = append(watched, kubeapi.WatchedKind{Kind: k.Kind, Namespaces: s.ownedNamespaces(k)})
	}
	missing := s.client.CheckWatch(ctx, watched...)
	if len(missing) == 0 {
		return nil
	}
	what := make([]string, len(missing))
	for i, m := range missing {
		what[i] = m.String()
	}
	return withCode(exitDenied, fmt.Errorf("the API server does not let this user %s; give it these RBAC rules:\n\n%s",
		strings.Join(what, ", nor "), strings.TrimSpace(kubeapi.RBACRules(missing))))
}

// checkSelectors asks the API server for one object of each selected watch, so
// that a selector that it does not take is said at once: a field selector is
// checked by nobody else, and its watch would fail for ever.
func (s *session) checkSelectors(ctx context.Context) error {
	check := func(k kubeapi.Kind, w abi.Watch) error {
		if w.LabelSelector == "" && w.FieldSelector == "" {
			return nil
		}
		_, err := s.dynamic.Resource(k.GVR()).List(ctx, metav1.ListOptions{LabelSelector: w.LabelSelector, FieldSelector: w.FieldSelector, Limit: 1})
		if apierrors.IsBadRequest(err) {
			return withCode(exitUsage, fmt.Errorf("selector of %s: %w", k.Name(), err))
		}
		return nil // whatever else is wrong, the watch will say, and wait
	}
	if err := check(s.kind, s.watch); err != nil {
		return err
	}
	for _, k := range s.owns {
		if err := check(k.Kind, k.watch); err != nil {
			return err
		}
	}
	return nil
}

// checkManifest refuses what this version does not do, rather than leaving it
// out: a controller that misses triggers looks as if it worked.
func checkManifest(m *abi.Manifest) error {
	var errs []error
	refuse := func(what string) {
		errs = append(errs, fmt.Errorf("manifest: %s: this version of wasmctl does not have that", what))
	}
	if len(m.Watches) > 0 {
		refuse("watches with a mapper")
	}
	if m.Finalizer != "" {
		refuse("finalizer")
	}
	all := append([]abi.Watch{}, m.Owns...)
	if m.For != nil {
		all = append(all, *m.For)
	}
	for _, w := range all {
		if len(w.Namespaces) > 1 {
			refuse(w.Kind + ": several namespaces")
		}
		if len(w.Predicates) > 0 {
			refuse(w.Kind + ": predicates")
		}
	}
	return withCode(exitModule, errors.Join(errs...))
}
