// SPDX-License-Identifier: Apache-2.0

package main

import (
	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// reconcile creates the entry that the spec requests. The status records the entry before it is
// created, so that it is not lost if the run is interrupted after that, or if the spec is edited.
func reconcile(ctx *wasmctl.Context, record wasmctl.Object) (wasmctl.Action, error) {
	want, had := entryIn(record, "spec"), entryIn(record, "status")
	if want != had {
		if err := had.remove(ctx.Client(), owner(record)); err != nil {
			return wasmctl.AwaitChange(), err
		}
		// Writing the status is a change, which causes the next run; Requeue only makes that
		// explicit.
		return wasmctl.Requeue(0).Force().Status(status(ctx, record, want, pending)), nil
	}
	if err := want.set(ctx.Client(), record.String("spec", "address"), owner(record)); err != nil {
		failed := wasmctl.Condition{Status: wasmctl.ConditionFalse, Reason: "Failed", Message: err.Error()}
		if wasmctl.IsConflict(err) {
			return wasmctl.AwaitChange(), err // it is retried at once, so the status is not updated
		}
		return wasmctl.AwaitChange().Status(status(ctx, record, want, failed)), err
	}
	ready := wasmctl.Condition{Status: wasmctl.ConditionTrue, Reason: "Published", Message: want.hostname + " is in the zone"}
	return wasmctl.AwaitChange().Force().Status(status(ctx, record, want, ready)), nil
}

// finalize removes the entry. The record remains until this succeeds. finalize may be called again
// after a success, if the host failed to remove the finalizer.
func finalize(ctx *wasmctl.Context, record wasmctl.Object) (wasmctl.Action, error) {
	return wasmctl.AwaitChange(), entryIn(record, "status").remove(ctx.Client(), owner(record))
}

var pending = wasmctl.Condition{Status: wasmctl.ConditionUnknown, Reason: "Pending", Message: "the entry is being made"}

func entryIn(record wasmctl.Object, part string) entry {
	return entry{zone: record.String(part, "zone"), hostname: record.String(part, "hostname")}
}

// owner identifies the record of an entry. The name alone is not sufficient, because a record may
// be deleted and created again.
func owner(record wasmctl.Object) string { return record.Key().String() + "/" + record.UID() }

func status(ctx *wasmctl.Context, record wasmctl.Object, at entry, ready wasmctl.Condition) *wasmctl.Builder {
	conditions := record.Conditions()
	ready.Type, ready.ObservedGeneration = "Ready", record.Generation()
	conditions.SetFunc(ready, ctx.Now)
	return wasmctl.Build().
		SetInt("observedGeneration", record.Generation()).
		Set("zone", at.zone).
		Set("hostname", at.hostname).
		SetValue("conditions", conditions)
}
