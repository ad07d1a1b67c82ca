// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// TestSyncing_CountsListedObjects: the progress of a start counts the objects of all watches that have not synced, and
// ends when all controllers have started.
func TestSyncing_CountsListedObjects(t *testing.T) {
	ready := admin.Watch{Source: "secrets", Phase: "ready", Objects: 5}
	running := func(w ...admin.Watch) admin.Controller {
		return admin.Controller{Name: "web", Phase: admin.PhaseRunning, Watches: w}
	}
	for _, c := range []struct {
		name, what  string
		objects     int64
		starting    bool
		controllers []admin.Controller
	}{
		{"none yet", "", 0, true, nil},
		{"loading", "", 0, true, []admin.Controller{{Name: "web", Phase: admin.PhaseLoading}}},
		{"one list", "web: listing pods", 1200, true, []admin.Controller{running(admin.Watch{Source: "pods", Phase: "syncing", Objects: 1200}, ready)}},
		{"two lists", "web: listing pods (and 1 more)", 1203, true, []admin.Controller{
			running(admin.Watch{Source: "pods", Phase: "syncing", Objects: 1200}), running(admin.Watch{Source: "nodes", Phase: "syncing", Objects: 3}),
		}},
		{"denied", "", 0, false, []admin.Controller{running(admin.Watch{Source: "pods", Phase: "denied"}, ready)}},
		{"waits for the cluster", "", 0, true, []admin.Controller{{Name: "web", Phase: admin.PhaseWaiting}}},
		{"failed", "", 0, false, []admin.Controller{{Name: "web", Phase: admin.PhaseFailed}}},
	} {
		what, objects, starting := syncing(&admin.Status{Controllers: c.controllers})
		if what != c.what || objects != c.objects || starting != c.starting {
			t.Errorf("%s: %q, %d, %v", c.name, what, objects, starting)
		}
	}
}
