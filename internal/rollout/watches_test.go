// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/controller"
)

// TestWatches_AdoptKeepsWhatBothNeed: a watch that the previous revision also needs is
// retained, also by a rollback; a watch that only the previous one needs is leaving.
func TestWatches_AdoptKeepsWhatBothNeed(t *testing.T) {
	type handles = map[string]*controller.Handle
	configMaps, secrets, accounts := new(controller.Handle), new(controller.Handle), new(controller.Handle)
	var w watches
	w.init(nil)
	w.active = handles{"configmaps": configMaps, "secrets": secrets}
	check := func(when string, active, leaving handles) {
		t.Helper()
		if !maps.Equal(w.active, active) || !maps.Equal(w.leaving, leaving) {
			t.Errorf("%s: active %v, leaving %v", when, w.active, w.leaving)
		}
	}
	w.adopt([]wanted{{id: "configmaps"}, {id: "accounts"}}, handles{"accounts": accounts})
	check("the second", handles{"configmaps": configMaps, "accounts": accounts}, handles{"secrets": secrets})
	w.adopt([]wanted{{id: "configmaps"}, {id: "secrets"}}, nil)
	check("the first again", handles{"configmaps": configMaps, "secrets": secrets}, handles{"accounts": accounts})
}
