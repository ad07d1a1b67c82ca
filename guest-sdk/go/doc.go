// SPDX-License-Identifier: Apache-2.0

// Package wasmctl is the SDK for Kubernetes reconcilers that run as sandboxed
// WebAssembly modules in a wasmctl host. This is a complete module:
//
//	package main
//
//	import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
//
//	func init() {
//		wasmctl.Register(wasmctl.Reconciler{
//			Manifest: wasmctl.Manifest{
//				For:          &wasmctl.Watch{Group: "example.com", Kind: "Greeting"},
//				Owns:         []wasmctl.Watch{{Kind: "ConfigMap"}},
//				Capabilities: []wasmctl.Capability{{Resource: "configmaps", Verbs: []string{"create", "patch"}}},
//			},
//			Reconcile: reconcile,
//		})
//	}
//
//	func reconcile(_ *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
//		return wasmctl.Apply(wasmctl.Map{
//			"apiVersion": "v1", "kind": "ConfigMap",
//			"metadata": wasmctl.Map{"name": obj.Name()},
//			"data":     wasmctl.Map{"text": obj.String("spec", "text")},
//		}).Force(), nil
//	}
//
//	func main() {} // not run in a module
//
// Build it with the standard toolchain,
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags="-s -w" -o greeting.wasm .
//
// or with TinyGo (see the README), and run it with
//
//	wasmctl run greeting.wasm
//
// A reconciler has two styles. It can declare the desired children and status
// in its result, as above, and the host applies them. Or it can make calls
// itself, with Context.Client.
//
// Reconcile reads the object in place: obj.String("spec", "text") decodes that
// field and nothing else. The host may discard the memory of a module between
// any two runs. Package guesttest runs a reconciler in a plain go test, on a
// fake host.
package wasmctl
