// SPDX-License-Identifier: Apache-2.0

// The benchguest module is for make bench-peers. It is the Go counterpart of
// guest-sdk/rust/benchguest: it reads three fields, and labels a pod if the
// name of its node begins with "label-".
package main

import (
	"errors"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

var reconciler = wasmctl.Reconciler{
	Manifest:  wasmctl.Manifest{Capabilities: []wasmctl.Capability{{Resource: "pods", Verbs: []string{"patch"}}}},
	Reconcile: reconcile,
}

func reconcile(ctx *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
	read := [3]string{obj.Name()}
	if obj.Kind() == "ConfigMap" {
		read[1], read[2] = obj.Label("tier"), obj.String("data", "config.yaml")
	} else {
		read[1], read[2] = obj.String("spec", "nodeName"), obj.String("status", "phase")
	}
	if read[0] == "" || read[1] == "" || read[2] == "" {
		return wasmctl.AwaitChange(), wasmctl.Permanent(errors.New("a field is missing"))
	}
	if strings.HasPrefix(read[1], "label-") && obj.Label("node") != read[1] {
		patch := wasmctl.MergePatch(wasmctl.Map{"metadata": wasmctl.Map{"labels": wasmctl.Map{"node": read[1]}}})
		if _, err := ctx.Client().Patch(obj.Ref(), patch, wasmctl.WriteOptions{}); err != nil {
			return wasmctl.AwaitChange(), err
		}
	}
	return wasmctl.AwaitChange(), nil
}

func init() { wasmctl.Register(reconciler) }

// main does not run in a module; the linker needs it.
func main() {}
