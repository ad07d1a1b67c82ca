// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// TestResolveAgain_FindsTheVersionThatIsServed: a controller whose options name its kind without a
// version finds the version that a changed CRD serves instead.
func TestResolveAgain_FindsTheVersionThatIsServed(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 1), swapOptions())
	w.wantReady()
	watched := []plan.Watched{w.engine.kind}
	devclustertest.Apply(t, w.cluster, []byte(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: swaps.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: swaps, singular: swap, kind: Swap}
  versions:
  - {name: v1, served: false, storage: true, schema: {openAPIV3Schema: &any {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: *any}}
`, "GROUP", w.group)))
	enginetest.Until(t, "version v2 is found", func() bool {
		now, err := w.engine.resolveAgain(t.Context(), &plan.Plan{Manifest: w.engine.Module.Manifest()})
		if err != nil {
			t.Log(err)
			return false
		}
		_, is, ok := otherVersion(watched, now)
		return ok && is.Version == "v2"
	})
}

// A kind counts as served in another version only if the version that was watched is not among those
// that the plan finds now.
func TestOtherVersion_NeedsTheSameResource(t *testing.T) {
	at := func(resource, version string) plan.Watched {
		return plan.Watched{Kind: kinds.Kind{Group: "g", Version: version, Kind: resource, Resource: resource}}
	}
	for name, c := range map[string]struct {
		before, now []plan.Watched
		want        string
	}{
		"the same":                 {[]plan.Watched{at("a", "v1"), at("b", "v1")}, []plan.Watched{at("a", "v1"), at("b", "v1")}, ""},
		"another version":          {[]plan.Watched{at("a", "v1"), at("b", "v1")}, []plan.Watched{at("a", "v1"), at("b", "v2")}, "v2"},
		"both versions watched":    {[]plan.Watched{at("a", "v1"), at("a", "v2")}, []plan.Watched{at("a", "v1"), at("a", "v2")}, ""},
		"an optional kind":         {[]plan.Watched{at("a", "v1")}, []plan.Watched{at("a", "v1"), at("b", "v1")}, ""},
		"an optional kind is gone": {[]plan.Watched{at("a", "v1"), at("b", "v1")}, []plan.Watched{at("a", "v1")}, ""},
	} {
		if _, is, _ := otherVersion(c.before, c.now); is.Version != c.want {
			t.Errorf("%s: version %q, want %q", name, is.Version, c.want)
		}
	}
}
