// SPDX-License-Identifier: Apache-2.0

// The webapp module maintains a Deployment and a Service for each WebApp, and reports the state of
// the Deployment in its status: a declared result from a pure function.
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

// reconciler defines this module; the tests use it too.
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

// defaultReplicas is a setting. configure sets it in each instance before the first run, and again
// when it changes: it is not state that is kept between runs.
var defaultReplicas int64 = 1

// configure rejects invalid settings, so that a mistake is reported where it is made and the last
// good settings remain in use.
func configure(_ *wasmctl.Context, settings map[string]string) error {
	n, err := strconv.ParseInt(settings["defaultReplicas"], 10, 32)
	if err != nil || n < 0 {
		return wasmctl.WithReason(errors.New("defaultReplicas: "+strconv.Quote(settings["defaultReplicas"])+" is not a number of replicas"), "BadSetting")
	}
	defaultReplicas = n
	return nil
}

// main is never called in a module, but the linker requires it.
func main() {}
