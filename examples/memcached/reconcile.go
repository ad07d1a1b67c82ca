// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// reconcile creates or updates the Deployment that the object requests. The status names the
// Deployment before it is created, so that none is left behind if a run is interrupted or the spec
// is edited.
func reconcile(ctx *wasmctl.Context, mc wasmctl.Object) (wasmctl.Action, error) {
	want, had := deploymentOf(mc), deployed(mc)
	if want != had {
		if err := remove(ctx, mc, had); err != nil {
			return wasmctl.AwaitChange(), err
		}
		return wasmctl.Requeue(0).Force().Status(status(ctx, mc, want, 0, wasmctl.Condition{
			Status: wasmctl.ConditionUnknown, Reason: "Starting", Message: "the Deployment is being made",
		})), nil
	}
	there, err := ctx.Cache().Get(want)
	if err != nil && !wasmctl.IsNotFound(err) {
		return wasmctl.AwaitChange(), err
	}
	if by, ours := primary(there); there.Exists() && (!ours || by != mc.Key()) {
		err := errors.New("deployment[" + want.Key().String() + "]: is not of this Memcached")
		return wasmctl.AwaitChange().Status(status(ctx, mc, want, 0, wasmctl.Condition{
			Status: wasmctl.ConditionFalse, Reason: "NotOwned", Message: err.Error(),
		})), wasmctl.WithReason(err, "NotOwned")
	}
	made, err := ctx.Client().Apply(deployment(mc, want), wasmctl.ApplyOptions{Force: true})
	if err != nil {
		return wasmctl.AwaitChange(), err
	}
	ready := wasmctl.Condition{Status: wasmctl.ConditionFalse, Reason: "Progressing"}
	if made.Int("status", "readyReplicas") >= mc.Int("spec", "size") {
		ready = wasmctl.Condition{Status: wasmctl.ConditionTrue, Reason: "Available"}
	}
	return wasmctl.AwaitChange().Force().Status(status(ctx, mc, want, made.Int("status", "readyReplicas"), ready)), nil
}

// finalize deletes the Deployment, because the garbage collector does not know that it belongs to
// the object.
func finalize(ctx *wasmctl.Context, mc wasmctl.Object) (wasmctl.Action, error) {
	return wasmctl.AwaitChange(), remove(ctx, mc, deployed(mc))
}

// remove deletes a Deployment if it exists and belongs to the object. It reads from the API server
// instead of the cache: a Deployment that is not in the cache yet would remain forever.
func remove(ctx *wasmctl.Context, mc wasmctl.Object, ref wasmctl.ObjectRef) error {
	if ref.Name == "" {
		return nil
	}
	there, err := ctx.Client().Get(ref, wasmctl.GetOptions{})
	switch by, ours := primary(there); {
	case wasmctl.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case !ours || by != mc.Key() || there.IsDeleting():
		return nil
	}
	err = ctx.Client().Delete(ref, wasmctl.DeleteOptions{Preconditions: wasmctl.Preconditions{UID: there.UID()}})
	if wasmctl.IsNotFound(err) {
		return nil
	}
	return err
}

// deploymentOf returns the key of the Deployment that the spec requests. Objects of the same name
// in different namespaces may request the same namespace, so the name contains both.
func deploymentOf(mc wasmctl.Object) wasmctl.ObjectRef {
	return deploymentIn(mc.String("spec", "namespace"), mc.Namespace()+"-"+mc.Name())
}

// deployed returns the key of the Deployment that may currently exist, according to the status.
func deployed(mc wasmctl.Object) wasmctl.ObjectRef {
	namespace, name, _ := strings.Cut(mc.String("status", "deployment"), "/")
	return deploymentIn(namespace, name)
}

func deploymentIn(namespace, name string) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
}

func deployment(mc wasmctl.Object, ref wasmctl.ObjectRef) wasmctl.Map {
	labels := wasmctl.Map{"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": ref.Name}
	return wasmctl.Map{
		"apiVersion": ref.APIVersion, "kind": ref.Kind,
		"metadata": wasmctl.Map{
			"name": ref.Name, "namespace": ref.Namespace, "labels": labels,
			"annotations": wasmctl.Map{primaryType: kind + "." + group, primaryName: mc.Key().String()},
		},
		"spec": wasmctl.Map{
			"replicas": mc.Int("spec", "size"),
			"selector": wasmctl.Map{"matchLabels": labels},
			"template": wasmctl.Map{
				"metadata": wasmctl.Map{"labels": labels},
				"spec": wasmctl.Map{"containers": []any{wasmctl.Map{
					"name": "memcached", "image": mc.String("spec", "image"), "args": []string{"-m", "64"},
					"ports": []any{wasmctl.Map{"containerPort": 11211}},
				}}},
			},
		},
	}
}

func status(ctx *wasmctl.Context, mc wasmctl.Object, at wasmctl.ObjectRef, ready int64, is wasmctl.Condition) *wasmctl.Builder {
	conditions := mc.Conditions()
	is.Type, is.ObservedGeneration = "Ready", mc.Generation()
	conditions.SetFunc(is, ctx.Now)
	return wasmctl.Build().
		SetInt("observedGeneration", mc.Generation()).
		Set("deployment", at.Key().String()).
		SetInt("ready", ready).
		SetValue("conditions", conditions)
}
