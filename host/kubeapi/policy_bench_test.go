// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// BenchmarkPolicy_Check measures the policy's cost for one operation: with a manifest alone, and
// within a grant.
func BenchmarkPolicy_Check(b *testing.B) {
	kind := kinds.Kind{Group: "examples.wasmctl.dev", Version: "v1", Kind: "Generator", Resource: "generators", Namespaced: true}
	caps := []abi.Capability{{Resource: "configmaps", Verbs: []string{VerbGet, VerbCreate, VerbPatch}}}
	plain := NewModulePolicy(kind, nil, caps)
	at := Attributes{Verb: VerbPatch, Resource: "configmaps", Namespace: "a", Name: "x"}
	for name, p := range map[string]*Policy{"manifest": plain, "grant": plain.Within(caps)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p.check(at, VerbPatch) != nil {
					b.Fatal("denied")
				}
			}
		})
	}
}
