// SPDX-License-Identifier: Apache-2.0

// The website module renders the configuration of a Website into a ConfigMap. Its kind has two
// versions: the module also validates Websites, sets their defaults, and converts them.
package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

const (
	group      = "examples.wasmctl.dev"
	apiVersion = group + "/v2"
	kind       = "Website"
)

// reconciler defines this module; the tests use it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "website", Version: "0.1.0",
		For:          &wasmctl.Watch{Group: group, Version: "v2", Kind: kind},
		Owns:         []wasmctl.Watch{{Version: "v1", Kind: "ConfigMap"}},
		Capabilities: []wasmctl.Capability{{Resource: "configmaps", Verbs: []string{"create", "patch"}}},
		// Path and Rules are those for the kind of For.
		Webhooks:    []wasmctl.Webhook{{Default: setDefaults}, {Validate: validate}},
		Conversions: []wasmctl.Conversion{{Group: group, Kind: kind, Versions: []string{"v1", "v2"}, Convert: convert}},
		Config:      map[string]string{"theme": "plain"},
		Requires:    []string{"declare", "admission", "convert"},
	},
	Reconcile: reconcile,
}

func init() { wasmctl.Register(reconciler) }

// main is never called in a module, but the linker requires it.
func main() {}

// reconcile declares the ConfigMap.
func reconcile(_ *wasmctl.Context, site wasmctl.Object) (wasmctl.Action, error) {
	scheme := "http"
	if site.Bool("spec", "tls") {
		scheme = "https"
	}
	return wasmctl.Apply(wasmctl.BuildObject(site.Key().Ref("v1", "ConfigMap")).End().
		Map("data").Set("url", scheme+"://"+address(site)).Set("theme", site.String("spec", "theme"))).Force(), nil
}
