// SPDX-License-Identifier: Apache-2.0

// The configmapgenerator module maintains a ConfigMap for each ConfigMapGenerator: the example of
// kube-rs' Controller, as a module for wasmctl.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// reconciler defines this module; the tests use it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "configmapgenerator", Version: "0.1.0",
		For:  &wasmctl.Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator"},
		Owns: []wasmctl.Watch{{Version: "v1", Kind: "ConfigMap"}},
		Capabilities: []wasmctl.Capability{
			{Resource: "configmaps", Verbs: []string{"get", "create", "patch"}},
		},
	},
	Reconcile:   reconcile,
	ErrorPolicy: errorPolicy,
}

func init() { wasmctl.Register(reconciler) }

// main is never called in a module, but the linker requires it.
func main() {}
