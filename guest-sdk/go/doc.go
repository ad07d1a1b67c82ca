// Package wasmctl is the SDK for Kubernetes reconcilers that run as sandboxed
// WebAssembly modules in a wasmctl host. A whole module:
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
// Two styles: what a run returns can declare the children and the status that
// are to be, as above, and the host makes it so; or the run makes calls itself,
// with Context.Client. Reconcile reads the object in place: obj.String("spec", "text") decodes that
// field and nothing else. What a module keeps in memory may be gone between any
// two runs. Package guesttest runs a reconciler in a plain go test, on a fake
// host.
package wasmctl
