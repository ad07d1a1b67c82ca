// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

const (
	// resync is the time after which an object is checked again although nothing has changed.
	resync = 300 * time.Second
	// retry is the time after which a failed run is retried.
	retry = 60 * time.Second
)

// reconcile applies the ConfigMap that the generator requests, and reports the result in the
// generator's status.
func reconcile(ctx *wasmctl.Context, gen wasmctl.Object) (wasmctl.Action, error) {
	if gen.IsDeleting() {
		// The garbage collector deletes the ConfigMap. Creating it again would block a foreground
		// deletion forever.
		return wasmctl.AwaitChange(), nil
	}
	ready := condition{Status: "True", Reason: "Applied", Message: "the ConfigMap is up to date"}
	_, failed := ctx.Client().Apply(configMap(gen), wasmctl.ApplyOptions{Force: true})
	if failed != nil {
		ready, failed = explain(ctx, gen, failed)
	}
	if err := writeStatus(ctx, gen, ready); wasmctl.IsNotFound(err) {
		return wasmctl.AwaitChange(), nil // the generator was deleted meanwhile
	} else if err != nil {
		// This error takes precedence over a permanent one, which would wait for a change although
		// the status does not show the reason.
		failed = err
	}
	return wasmctl.Requeue(resync), failed
}

// errorPolicy retries after a fixed time. A permanent error still waits for a change.
func errorPolicy(_ *wasmctl.Context, _ wasmctl.Object, _ wasmctl.Failure) wasmctl.Action {
	return wasmctl.Requeue(retry)
}

// configMap returns the child of gen. Because of the controller reference, the garbage collector
// deletes it with gen, and the host reconciles gen when it changes.
func configMap(gen wasmctl.Object) *wasmctl.Builder {
	return wasmctl.BuildObject(configMapRef(gen)).
		Controller(gen).
		End(). // of metadata
		Map("data").Set("content", gen.String("spec", "content"))
}

func configMapRef(gen wasmctl.Object) wasmctl.ObjectRef { return gen.Key().Ref("v1", "ConfigMap") }

// explain turns a failed apply into a condition and an error. An object can have only one
// controller, so the API server rejects the apply as invalid if the ConfigMap belongs to another
// one. Only in that case, read it.
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
