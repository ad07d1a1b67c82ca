// SPDX-License-Identifier: Apache-2.0

// The dnsrecord module maintains a zone entry for each DNSRecord, and removes it before the record
// is deleted: a finalizer with external cleanup.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	apiVersion = "examples.wasmctl.dev/v1"
	kind       = "DNSRecord"
)

// reconciler defines this module; the tests use it too.
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

// main is never called in a module, but the linker requires it.
func main() {}
