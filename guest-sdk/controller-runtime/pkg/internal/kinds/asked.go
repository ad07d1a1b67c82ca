// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// asked has the kinds for which the program queried a mapper or discovery, and
// which an API server may lack. Programs do that before they declare a watch,
// so a watch of such a kind is optional.
var (
	askedMu sync.Mutex
	asked   = map[schema.GroupKind]bool{} // guarded by askedMu
)

// Ask reports whether the API server has a kind. main runs before the host has
// an API server, so the answer is yes, unless the build has excluded the kind.
func Ask(gk schema.GroupKind) error {
	if lacks(gk) {
		return &meta.NoKindMatchError{GroupKind: gk}
	}
	if OfKubernetes(gk.Group) {
		return nil
	}
	askedMu.Lock()
	defer askedMu.Unlock()
	if !asked[gk] {
		asked[gk] = true
		logf.Log.Info("assumes that the API server has this kind, or will have it; for a cluster without it, use wasmctl build --without KIND.GROUP", "kind", gk.String())
	}
	return nil
}

// MayLack reports whether the program queried a kind, and so can work without
// it.
func MayLack(gk schema.GroupKind) bool {
	askedMu.Lock()
	defer askedMu.Unlock()
	return asked[gk]
}

// lacks reports whether the program was built without the kind or its group.
func lacks(gk schema.GroupKind) bool {
	return program.Without(gk.Group) || program.Without(gk.String())
}

// OfKubernetes reports whether a group is built into the API server.
func OfKubernetes(group string) bool {
	if !strings.Contains(group, ".") {
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && ownGroups[group]
}

// ownGroups has the groups of Kubernetes that have a domain.
var ownGroups = map[string]bool{}

func init() {
	for _, name := range []string{
		"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates", "coordination",
		"discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node", "rbac.authorization", "resource",
		"scheduling", "storage", "storagemigration",
	} {
		ownGroups[name+".k8s.io"] = true
	}
}
