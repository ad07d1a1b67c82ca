package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
