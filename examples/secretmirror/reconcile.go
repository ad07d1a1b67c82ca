// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// reconcile declares the desired copies. It writes nothing itself: the host applies the copies,
// deletes the others and writes the status.
func reconcile(ctx *wasmctl.Context, mirror wasmctl.Object) (wasmctl.Action, error) {
	secret, err := ctx.Cache().Get(source(mirror))
	if wasmctl.IsNotFound(err) {
		// The copies remain: if a user deletes the Secret and creates it again, it should not
		// disappear everywhere in between.
		return wasmctl.AwaitChange().Status(status(ctx, mirror, -1, wasmctl.Condition{
			Status: wasmctl.ConditionFalse, Reason: "SourceMissing", Message: source(mirror).String() + " does not exist; its copies stay",
		})), nil
	}
	if err != nil {
		return wasmctl.AwaitChange(), err
	}
	namespaces, taken, err := targets(ctx, mirror)
	if err != nil {
		return wasmctl.AwaitChange(), err
	}
	action := wasmctl.AwaitChange().Prune().Force()
	for _, ns := range namespaces {
		action = action.Apply(copyOf(secret, ns))
	}
	ready := wasmctl.Condition{Status: wasmctl.ConditionTrue, Reason: "Mirrored", Message: strconv.Itoa(len(namespaces)) + " copies"}
	if len(taken) > 0 {
		ready = wasmctl.Condition{
			Status: wasmctl.ConditionFalse, Reason: "NameTaken",
			Message: "another Secret of that name is in " + strings.Join(taken, ", "),
		}
	}
	return action.Status(status(ctx, mirror, len(namespaces), ready)), nil
}

// targets returns the namespaces that should have a copy, and those with a Secret of that name that
// is not a copy of this mirror, which must not be changed.
func targets(ctx *wasmctl.Context, mirror wasmctl.Object) (namespaces, taken []string, err error) {
	all := wasmctl.ObjectRef{APIVersion: "v1", Kind: "Namespace"}
	opts := wasmctl.CacheListOptions{LabelSelector: mirror.String("spec", "namespaces")}
	for ns, err := range ctx.Cache().All(all, opts) {
		switch {
		case err != nil:
			return nil, nil, err
		case ns.IsDeleting() || ns.Name() == source(mirror).Namespace:
			continue // nothing can be created in a namespace that is being deleted
		}
		there, err := ctx.Cache().Get(secretIn(ns.Name(), source(mirror).Name))
		switch {
		case err != nil && !wasmctl.IsNotFound(err):
			return nil, nil, err
		case err == nil && !there.IsControlledBy(mirror):
			taken = append(taken, ns.Name())
		default:
			namespaces = append(namespaces, ns.Name())
		}
	}
	return namespaces, taken, nil
}

// copyOf returns the child in a namespace. The host makes the mirror its controller, which is
// allowed because the mirror is cluster-scoped.
func copyOf(secret wasmctl.Object, namespace string) *wasmctl.Builder {
	return wasmctl.BuildObject(secretIn(namespace, secret.Name())).End().
		Set("type", secret.String("type")).
		SetValue("data", secret.At("data"))
}

func source(mirror wasmctl.Object) wasmctl.ObjectRef {
	return secretIn(mirror.String("spec", "source", "namespace"), mirror.String("spec", "source", "name"))
}

func secretIn(namespace, name string) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

// status returns the complete status. If nothing is new, it equals the last one, and the host
// writes nothing. If copies is negative, the number of copies does not change.
func status(ctx *wasmctl.Context, mirror wasmctl.Object, copies int, ready wasmctl.Condition) *wasmctl.Builder {
	conditions := mirror.Conditions()
	ready.Type, ready.ObservedGeneration = "Ready", mirror.Generation()
	conditions.SetFunc(ready, ctx.Now)
	n := int64(copies)
	if copies < 0 {
		n = mirror.Int("status", "copies")
	}
	return wasmctl.Build().
		SetInt("observedGeneration", mirror.Generation()).
		SetInt("copies", n).
		SetValue("conditions", conditions)
}
