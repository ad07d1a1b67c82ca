// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// Values of Isolation.By.
const (
	ByController = v1alpha1.IsolateAlone
	ByTenant     = "tenant"
)

// Isolation determines which modules run in guest processes. A spec cannot change that.
type Isolation struct {
	// By is ByController for a process for each Reconciler, or ByTenant for one that the
	// Reconcilers of a namespace share. If empty, all modules run in this process.
	By string
	// Namespaces restricts the isolation to the Reconcilers of these namespaces, and to the
	// ClusterReconcilers whose service account is in one of them. If empty, all are isolated.
	Namespaces []string
}

// Validate returns an error that names the flags. supported reports whether the system has guest
// processes.
func (i *Isolation) Validate(supported bool) error {
	switch {
	case i.By == "" && len(i.Namespaces) > 0:
		return errors.New("--isolate-namespaces needs --isolate")
	case i.By != "" && i.By != ByController && i.By != ByTenant:
		return fmt.Errorf("--isolate=%s: want %q or %q", i.By, ByController, ByTenant)
	case i.By != "" && !supported:
		return errors.New("--isolate needs Linux")
	}
	return nil
}

// class returns the Isolate option of a Reconciler's controller. A ClusterReconciler is no tenant:
// it always has a process of its own.
func (i *Isolation) class(r *reconciler) string {
	switch {
	case i.By == "", len(i.Namespaces) > 0 && !slices.Contains(i.Namespaces, r.home()):
		return ""
	case i.By == ByTenant && r.kind == v1alpha1.KindNamespaced:
		return r.meta.Namespace
	}
	return v1alpha1.IsolateAlone
}
