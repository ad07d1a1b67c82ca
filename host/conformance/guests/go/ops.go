// SPDX-License-Identifier: Apache-2.0

package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// operate carries out an operation with exactly the keys of the request, through
// the function that a reconciler would use for it.
func operate(ctx *wasmctl.Context, op string, req wasmctl.Value) wasmctl.Map {
	ref := refOf(req)
	switch op {
	case "api_get":
		return object(ctx.Client().Get(ref, wasmctl.GetOptions{
			Subresource: req.String("subresource"), ResourceVersion: req.String("resourceVersion"),
		}))
	case "api_list":
		l, err := ctx.Client().List(ref, wasmctl.ListOptions{
			LabelSelector: req.String("labelSelector"), FieldSelector: req.String("fieldSelector"),
			Limit: req.Int("limit"), Continue: req.String("continue"),
			ResourceVersion: req.String("resourceVersion"), ResourceVersionMatch: req.String("resourceVersionMatch"),
		})
		return answer(l.Value, err)
	case "cache_get":
		return object(ctx.Cache().Get(ref))
	case "cache_list":
		l, err := ctx.Cache().List(ref, wasmctl.CacheListOptions{
			LabelSelector: req.String("labelSelector"), FieldSelector: req.String("fieldSelector"), Owner: req.String("owner"),
			Limit: req.Int("limit"), Continue: req.String("continue"),
		})
		return answer(l.Value, err)
	case "api_create", "api_update", "api_apply":
		return object(write(ctx.Client(), op, req))
	case "api_patch":
		return object(ctx.Client().Patch(ref, patch(req), options(req)))
	case "api_delete":
		return done(ctx.Client().Delete(ref, deletion(req)))
	case "event_record":
		return done(ctx.RecordEvent(event(req)))
	case "config_get":
		return config(ctx, req)
	}
	return wasmctl.Map{"lacks": op}
}

// write is what takes a whole object. With a name beside it, the object is the
// body of a subresource.
func write(c *wasmctl.Client, op string, req wasmctl.Value) (wasmctl.Object, error) {
	body, opts := req.At("object"), options(req)
	apply := wasmctl.ApplyOptions{WriteOptions: opts, Force: req.Bool("force")}
	if req.Exists("kind") {
		sub := c.Subresource(refOf(req), req.String("subresource"))
		switch op {
		case "api_create":
			return sub.Create(body, opts)
		case "api_update":
			return sub.Update(body, opts)
		}
		return sub.Apply(body, apply)
	}
	switch op {
	case "api_create":
		return c.Create(body, opts)
	case "api_update":
		return c.Update(body, opts)
	}
	return c.Apply(body, apply)
}

func options(req wasmctl.Value) wasmctl.WriteOptions {
	return wasmctl.WriteOptions{
		Subresource: req.String("subresource"), DryRun: req.Bool("dryRun"),
		FieldManager: req.String("fieldManager"), FieldValidation: req.String("fieldValidation"),
		Preconditions: preconditions(req),
	}
}

func preconditions(req wasmctl.Value) wasmctl.Preconditions {
	return wasmctl.Preconditions{
		UID: req.String("preconditions", "uid"), ResourceVersion: req.String("preconditions", "resourceVersion"),
	}
}

func deletion(req wasmctl.Value) wasmctl.DeleteOptions {
	opts := wasmctl.DeleteOptions{
		DryRun: req.Bool("dryRun"), PropagationPolicy: req.String("propagationPolicy"), Preconditions: preconditions(req),
	}
	if req.Exists("gracePeriodSeconds") {
		grace := req.Int("gracePeriodSeconds")
		opts.GracePeriodSeconds = &grace
	}
	return opts
}

func patch(req wasmctl.Value) wasmctl.Patch {
	body := req.At("patch")
	switch req.String("patchType") {
	case "merge":
		return wasmctl.MergePatch(body)
	case "strategic":
		return wasmctl.StrategicPatch(body)
	}
	var ops []wasmctl.PatchOp
	for _, o := range body.Elements() {
		ops = append(ops, wasmctl.PatchOp{Op: o.String("op"), Path: o.String("path"), From: o.String("from"), Value: o.At("value")})
	}
	return wasmctl.JSONPatch(ops...)
}

func event(req wasmctl.Value) wasmctl.Event {
	return wasmctl.Event{
		Type: wasmctl.EventType(req.String("type")), Reason: req.String("reason"), Action: req.String("action"), Note: req.String("note"),
		Regarding: eventObject(req.At("regarding")), Related: eventObject(req.At("related")),
	}
}

func eventObject(v wasmctl.Value) *wasmctl.EventObject {
	if !v.Exists() {
		return nil
	}
	return &wasmctl.EventObject{ObjectRef: refOf(v), UID: v.String("uid")}
}

func refOf(v wasmctl.Value) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{
		APIVersion: v.String("apiVersion"), Kind: v.String("kind"), Namespace: v.String("namespace"), Name: v.String("name"),
	}
}

func config(ctx *wasmctl.Context, req wasmctl.Value) wasmctl.Map {
	if !req.Exists("key") {
		all, err := ctx.AllConfig()
		if err != nil {
			return fault(err)
		}
		return wasmctl.Map{"status": 0, "body": all}
	}
	v, err := ctx.Config(req.String("key"))
	if err != nil {
		return fault(err)
	}
	return wasmctl.Map{"status": 0, "body": v}
}

// object, answer and done report the answer of an operation.
func object(o wasmctl.Object, err error) wasmctl.Map { return answer(o.Value, err) }

func answer(v wasmctl.Value, err error) wasmctl.Map {
	if err != nil {
		return fault(err)
	}
	return wasmctl.Map{"status": 0, "body": v}
}

func done(err error) wasmctl.Map {
	if err != nil {
		return fault(err)
	}
	return wasmctl.Map{"status": 0}
}

// fault reports an error of the SDK. One that is not of the host is no answer.
func fault(err error) wasmctl.Map {
	e, ok := wasmctl.AsError(err)
	if !ok {
		return wasmctl.Map{"failed": err.Error()}
	}
	m := wasmctl.Map{"status": e.Status, "reason": e.Reason, "message": e.Message}
	if e.Rule != nil {
		m["rule"] = e.Rule
	}
	return m
}
