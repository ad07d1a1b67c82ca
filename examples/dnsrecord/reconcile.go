package main

import (
	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// reconcile makes the entry that the spec asks for. The status says which entry
// there may be, and says so before there is one: a run that is interrupted after
// the entry was made, or an edit of the spec, must not lose it.
func reconcile(ctx *wasmctl.Context, record wasmctl.Object) (wasmctl.Action, error) {
	want, had := entryIn(record, "spec"), entryIn(record, "status")
	if want != had {
		if err := had.remove(ctx.Client(), owner(record)); err != nil {
			return wasmctl.AwaitChange(), err
		}
		// The write of the status is a change, which brings the next run; Requeue
		// only says so.
		return wasmctl.Requeue(0).Force().Status(status(ctx, record, want, pending)), nil
	}
	if err := want.set(ctx.Client(), record.String("spec", "address"), owner(record)); err != nil {
		failed := wasmctl.Condition{Status: wasmctl.ConditionFalse, Reason: "Failed", Message: err.Error()}
		if wasmctl.IsConflict(err) {
			return wasmctl.AwaitChange(), err // tried again at once; not worth a status
		}
		return wasmctl.AwaitChange().Status(status(ctx, record, want, failed)), err
	}
	ready := wasmctl.Condition{Status: wasmctl.ConditionTrue, Reason: "Published", Message: want.hostname + " is in the zone"}
	return wasmctl.AwaitChange().Force().Status(status(ctx, record, want, ready)), nil
}

// finalize takes the entry out. The record stays until this succeeds; it may be
// called again after it did, when the host could not take the finalizer off.
func finalize(ctx *wasmctl.Context, record wasmctl.Object) (wasmctl.Action, error) {
	return wasmctl.AwaitChange(), entryIn(record, "status").remove(ctx.Client(), owner(record))
}

var pending = wasmctl.Condition{Status: wasmctl.ConditionUnknown, Reason: "Pending", Message: "the entry is being made"}

func entryIn(record wasmctl.Object, part string) entry {
	return entry{zone: record.String(part, "zone"), hostname: record.String(part, "hostname")}
}

// owner marks the entries of a record. A record of the same name that is made
// later is another one, so the name alone would not do.
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
