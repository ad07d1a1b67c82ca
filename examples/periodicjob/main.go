// The periodicjob module starts a Job again and again: a reconciler that asks to
// be called at a time.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	apiVersion = "examples.wasmctl.dev/v1"
	kind       = "PeriodicJob"
)

// reconciler is what this module does; the tests run it too.
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

// main is not run in a module; the linker wants it.
func main() {}
