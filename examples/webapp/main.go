// The webapp module keeps a Deployment and a Service for each WebApp, and says in
// its status how the Deployment is: a declared result from a pure function.
package main

import (
	"errors"
	"strconv"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

const (
	apiVersion = "examples.wasmctl.dev/v1"
	kind       = "WebApp"
)

// reconciler is what this module does; the tests run it too.
var reconciler = wasmctl.Reconciler{
	Manifest: wasmctl.Manifest{
		Name: "webapp", Version: "0.1.0",
		For: &wasmctl.Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: kind},
		Owns: []wasmctl.Watch{
			{Group: "apps", Version: "v1", Kind: "Deployment"},
			{Version: "v1", Kind: "Service"},
		},
		Capabilities: []wasmctl.Capability{
			{Group: "apps", Resource: "deployments", Verbs: []string{"get", "create", "patch", "delete"}},
			{Resource: "services", Verbs: []string{"create", "patch", "delete"}},
			{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
		},
		Config:   map[string]string{"defaultReplicas": "1"},
		Requires: []string{"declare", "cache_get"},
	},
	Reconcile: reconcile,
	Configure: configure,
}

func init() { wasmctl.Register(reconciler) }

// defaultReplicas is a setting. Configure sets it in each instance before its
// first run, and again when it changes: it is no memory between runs.
var defaultReplicas int64 = 1

// configure refuses what it cannot use, so that a mistake shows where it is made
// and the last good settings stay.
func configure(_ *wasmctl.Context, settings map[string]string) error {
	n, err := strconv.ParseInt(settings["defaultReplicas"], 10, 32)
	if err != nil || n < 0 {
		return wasmctl.WithReason(errors.New("defaultReplicas: "+strconv.Quote(settings["defaultReplicas"])+" is not a number of replicas"), "BadSetting")
	}
	defaultReplicas = n
	return nil
}

// main is not run in a module; the linker wants it.
func main() {}
