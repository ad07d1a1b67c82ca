// SPDX-License-Identifier: Apache-2.0

// The memcached module runs memcached in a namespace that the object specifies. The Deployment
// there names its Memcached in annotations, because an owner reference cannot: the example of
// kube-rs' Controller::watches, as a module for wasmctl.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	group      = "cache.example.com"
	apiVersion = group + "/v1"
	kind       = "Memcached"
)

// reconciler defines this module; the tests use it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "memcached", Version: "0.1.0",
		For:       &wasmctl.Watch{Group: group, Version: "v1", Kind: kind},
		Watches:   []wasmctl.Watch{{Group: "apps", Version: "v1", Kind: "Deployment", Mapper: primaryOf}},
		Finalizer: group + "/memcached",
		Capabilities: []wasmctl.Capability{
			{Group: "apps", Resource: "deployments", Verbs: []string{"get", "create", "patch", "delete"}},
		},
		Requires: []string{"cache_get", "map", "finalize"},
	},
	Reconcile: reconcile,
	Finalize:  finalize,
}

func init() { wasmctl.Register(reconciler) }

// main is never called in a module, but the linker requires it.
func main() {}
