// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// A store is fresh without a request if its list was requested after the time in question. Otherwise, it includes
// everything that was written before, although no event has come since.
func TestReal_Fresh(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	cm := configMapsIn(t, c.RESTConfig(), ns)
	cm.create("a")
	cfg := c.RESTConfig()
	before := time.Now()
	asked := queries(cfg)
	w := observe(t, cfg, watcher.Source{Resource: configMaps, Namespace: ns})
	w.phase(watcher.Ready) // the last request of its start is answered
	n := len(asked())
	if err := w.sub.Fresh(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if more := asked()[n:]; len(more) > 0 {
		t.Errorf("requests: %v, want none", more)
	}
	cm.create("b", "c")
	if err := w.sub.Fresh(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	cm.agrees(w.sub.Store())
}
