// SPDX-License-Identifier: Apache-2.0

// The periodicjob module starts a Job periodically: a reconciler that requests to be called at a
// given time.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	apiVersion = "examples.wasmctl.dev/v1"
	kind       = "PeriodicJob"
)

// reconciler defines this module; the tests use it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "periodicjob", Version: "0.1.0",
		For:  &wasmctl.Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: kind},
		Owns: []wasmctl.Watch{{Group: "batch", Version: "v1", Kind: "Job", ControllerOnly: true}},
		Capabilities: []wasmctl.Capability{
			{Group: "batch", Resource: "jobs", Verbs: []string{"list", "create", "delete"}},
			{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
		},
		Requires: []string{"cache_list"},
	},
	Reconcile: reconcile,
}

func init() { wasmctl.Register(reconciler) }

// main is never called in a module, but the linker requires it.
func main() {}
