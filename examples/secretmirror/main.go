// SPDX-License-Identifier: Apache-2.0

// The secretmirror module maintains copies of a Secret in the namespaces that a label selector
// selects: watches with a mapper, and a declared result.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	apiVersion = "examples.wasmctl.dev/v1"
	kind       = "SecretMirror"
)

// reconciler defines this module; the tests use it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "secretmirror", Version: "0.1.0",
		For:  &wasmctl.Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: kind},
		Owns: []wasmctl.Watch{{Version: "v1", Kind: "Secret", ControllerOnly: true}},
		Watches: []wasmctl.Watch{
			// The same watch as the one above: the host shares it.
			{Version: "v1", Kind: "Secret", Mapper: mirrorsOfSecret},
			{Version: "v1", Kind: "Namespace", MetadataOnly: true, Predicates: []string{"labels", "deletion"}, Mapper: allMirrors},
		},
		Capabilities: []wasmctl.Capability{
			{Resource: "secrets", Verbs: []string{"get", "create", "patch", "delete"}},
			{Resource: "namespaces", Verbs: []string{"list"}},
		},
		Requires: []string{"declare", "cache_list", "map"},
	},
	Reconcile: reconcile,
}

func init() { wasmctl.Register(reconciler) }

// main is never called in a module, but the linker requires it.
func main() {}
