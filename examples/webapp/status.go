// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// status reports the state of the Deployment, which does not exist in the first run; its first
// change causes another run.
func status(ctx *wasmctl.Context, app, deployed wasmctl.Object) *wasmctl.Builder {
	want, have := deployed.Int("spec", "replicas"), deployed.Int("status", "availableReplicas")
	message := strconv.FormatInt(have, 10) + " of " + strconv.FormatInt(want, 10) + " replicas are available"
	ready := wasmctl.Condition{Type: "Ready", Status: wasmctl.ConditionTrue, Reason: "Available", Message: message}
	switch {
	case !deployed.Exists():
		ready.Status, ready.Reason, ready.Message = wasmctl.ConditionUnknown, "Starting", "the Deployment is being made"
	case deployed.Int("status", "observedGeneration") < deployed.Generation():
		ready.Status, ready.Reason, ready.Message = wasmctl.ConditionUnknown, "Progressing", "the Deployment has not been looked at yet"
	case have < want:
		ready.Status, ready.Reason = wasmctl.ConditionFalse, "Progressing"
	}
	return newStatus(ctx, app, have, ready)
}

// newStatus returns the complete status. If nothing is new, it equals the last one, and the host
// writes nothing, so there is no further run.
func newStatus(ctx *wasmctl.Context, app wasmctl.Object, replicas int64, ready wasmctl.Condition) *wasmctl.Builder {
	conditions := app.Conditions()
	ready.ObservedGeneration = app.Generation()
	conditions.SetFunc(ready, ctx.Now)
	return wasmctl.Build().
		SetInt("observedGeneration", app.Generation()).
		SetInt("replicas", replicas).
		SetValue("conditions", conditions)
}
