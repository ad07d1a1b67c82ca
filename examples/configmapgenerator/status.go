// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// condition is the Ready condition, in the format of meta/v1.
type condition struct {
	Status, Reason, Message string
}

// writeStatus applies the status if it contains something new. A write changes the object, which is
// then reconciled again: a status that is written in every run would cause an endless loop.
func writeStatus(ctx *wasmctl.Context, gen wasmctl.Object, ready condition) error {
	old := readyCondition(gen)
	since := old.String("lastTransitionTime")
	switch {
	case old.String("status") != ready.Status || since == "":
		since = ctx.Now().UTC().Format(time.RFC3339)
	case gen.Int("status", "observedGeneration") == gen.Generation() &&
		old.Int("observedGeneration") == gen.Generation() &&
		old.String("reason") == ready.Reason && old.String("message") == ready.Message:
		return nil
	}
	_, err := ctx.Client().ApplyStatus(wasmctl.Map{
		"apiVersion": gen.APIVersion(),
		"kind":       gen.Kind(),
		"metadata":   wasmctl.Map{"name": gen.Name(), "namespace": gen.Namespace()},
		"status": wasmctl.Map{
			"observedGeneration": gen.Generation(),
			"conditions": []any{wasmctl.Map{
				"type": "Ready", "status": ready.Status, "reason": ready.Reason, "message": ready.Message,
				"observedGeneration": gen.Generation(), "lastTransitionTime": since,
			}},
		},
	}, wasmctl.ApplyOptions{Force: true})
	return err
}

// readyCondition returns the Ready condition that gen has, if any.
func readyCondition(gen wasmctl.Object) wasmctl.Value {
	for _, c := range gen.Elements("status", "conditions") {
		if c.String("type") == "Ready" {
			return c
		}
	}
	return wasmctl.Value{}
}
