// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// reconcile declares the desired objects. It reads the existing Deployment for the status, and
// writes nothing itself.
func reconcile(ctx *wasmctl.Context, app wasmctl.Object) (wasmctl.Action, error) {
	if app.IsDeleting() {
		return wasmctl.AwaitChange(), nil // the garbage collector deletes the children
	}
	deployed, err := ctx.Cache().Get(app.Key().Ref("apps/v1", "Deployment"))
	if err != nil && !wasmctl.IsNotFound(err) {
		return wasmctl.AwaitChange(), err
	}
	if deployed.Exists() && !deployed.IsControlledBy(app) {
		return refuse(ctx, app, deployed)
	}
	action := wasmctl.Apply(deployment(app)).Prune().Force()
	if app.Exists("spec", "port") {
		action = action.Apply(service(app)) // without it, Prune deletes an existing one
	}
	return action.Status(status(ctx, app, deployed)), nil
}

// refuse does not touch a Deployment that belongs to something else. The object waits for a change;
// the status next to the error explains why.
func refuse(ctx *wasmctl.Context, app, deployed wasmctl.Object) (wasmctl.Action, error) {
	who := "nobody controls it"
	if c, ok := deployed.Controller(); ok {
		who = c.Kind + " " + c.Name + " controls it"
	}
	err := errors.New("deployment[" + deployed.Key().String() + "]: is not of this app, " + who + ": delete it, or name the app differently")
	ctx.Event(wasmctl.EventWarning, "NotOwned", err.Error())
	ready := wasmctl.Condition{Type: "Ready", Status: wasmctl.ConditionFalse, Reason: "NotOwned", Message: err.Error()}
	return wasmctl.AwaitChange().Status(newStatus(ctx, app, 0, ready)), wasmctl.WithReason(wasmctl.Permanent(err), "NotOwned")
}

func labels(app wasmctl.Object) wasmctl.Map { return wasmctl.Map{"app.kubernetes.io/name": app.Name()} }

// deployment is built with a Builder, which writes directly into the message. A Map would work as
// well, but is slower.
func deployment(app wasmctl.Object) *wasmctl.Builder {
	replicas := defaultReplicas
	if app.Exists("spec", "replicas") {
		replicas = app.Int("spec", "replicas")
	}
	b := wasmctl.BuildObject(app.Key().Ref("apps/v1", "Deployment")).SetValue("labels", labels(app)).End().
		Map("spec").
		SetInt("replicas", replicas).
		Map("selector").SetValue("matchLabels", labels(app)).End().
		Map("template").
		Map("metadata").SetValue("labels", labels(app)).End().
		Map("spec").List("containers").AddMap().
		Set("name", "app").
		Set("image", app.String("spec", "image"))
	if port := app.Int("spec", "port"); port != 0 {
		b.List("ports").AddMap().SetInt("containerPort", port).End().End()
	}
	return b // the open maps and lists are closed when the message is sent
}

func service(app wasmctl.Object) *wasmctl.Builder {
	return wasmctl.BuildObject(app.Key().Ref("v1", "Service")).SetValue("labels", labels(app)).End().
		Map("spec").
		SetValue("selector", labels(app)).
		List("ports").AddMap().
		SetInt("port", 80).
		SetInt("targetPort", app.Int("spec", "port"))
}
