// The dnsrecord module keeps an entry of a zone for each DNSRecord, and takes it
// out before the record goes: a finalizer with external cleanup.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	apiVersion = "examples.wasmctl.dev/v1"
	kind       = "DNSRecord"
)

// reconciler is what this module does; the tests run it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "dnsrecord", Version: "0.1.0",
		For:       &wasmctl.Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: kind},
		Finalizer: "examples.wasmctl.dev/dnsrecord",
		Capabilities: []wasmctl.Capability{
			{Resource: "configmaps", Verbs: []string{"get", "patch"}, Namespaces: []string{zones}},
		},
		Requires: []string{"finalize"},
	},
	Reconcile: reconcile,
	Finalize:  finalize,
}

func init() { wasmctl.Register(reconciler) }

// main is not run in a module; the linker wants it.
func main() {}
