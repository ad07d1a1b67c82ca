package main

import (
	"errors"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

const (
	// resync is when an object is checked again although nothing changed.
	resync = 300 * time.Second
	// retry is when an object whose run failed is retried.
	retry = 60 * time.Second
)

// reconcile makes the ConfigMap what the generator asks for, and says in the
// generator's status how that went.
func reconcile(ctx *wasmctl.Context, gen wasmctl.Object) (wasmctl.Action, error) {
	if gen.IsDeleting() {
		// The garbage collector takes the ConfigMap. Making it again would hold
		// up a foreground deletion forever.
		return wasmctl.AwaitChange(), nil
	}
	ready := condition{Status: "True", Reason: "Applied", Message: "the ConfigMap is up to date"}
	_, failed := ctx.Client().Apply(configMap(gen), wasmctl.ApplyOptions{Force: true})
	if failed != nil {
		ready, failed = explain(ctx, gen, failed)
	}
	if err := writeStatus(ctx, gen, ready); err != nil {
		// It counts even beside a permanent error: that would wait for a change, and
		// the status would never say for which.
		failed = err
	}
	return wasmctl.Requeue(resync), failed
}

// errorPolicy retries after a fixed time. A permanent error waits for a change
// all the same.
func errorPolicy(_ *wasmctl.Context, _ wasmctl.Object, _ wasmctl.Failure) wasmctl.Action {
	return wasmctl.Requeue(retry)
}

// configMap is the child of gen. The controller reference lets the garbage
// collector delete it with gen, and lets the host reconcile gen when it changes.
func configMap(gen wasmctl.Object) *wasmctl.Builder {
	return wasmctl.BuildObject(configMapRef(gen)).
		Controller(gen).
		End(). // of metadata
		Map("data").Set("content", gen.String("spec", "content"))
}

func configMapRef(gen wasmctl.Object) wasmctl.ObjectRef { return gen.Key().Ref("v1", "ConfigMap") }

// explain turns a failed apply into a condition and an error. The API server
// lets an object have one controller, so a ConfigMap that is another one's is
// refused as invalid and stays as it was: only then is it worth a look.
func explain(ctx *wasmctl.Context, gen wasmctl.Object, failed error) (condition, error) {
	if wasmctl.IsInvalid(failed) {
		cm, err := ctx.Client().Get(configMapRef(gen), wasmctl.GetOptions{})
		if err != nil {
			return applyFailed(err), err
		}
		if owner, ok := cm.Controller(); ok && owner.UID != gen.UID() {
			msg := "configmap[" + gen.Name() + "]: is controlled by " + owner.Kind + " " + owner.Name
			return condition{Status: "False", Reason: "NotOwned", Message: msg},
				wasmctl.WithReason(wasmctl.Permanent(errors.New(msg)), "NotOwned")
		}
	}
	return applyFailed(failed), failed
}

func applyFailed(err error) condition {
	return condition{Status: "False", Reason: "ApplyFailed", Message: err.Error()}
}
