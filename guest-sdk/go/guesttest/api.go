// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"maps"
	"slices"
	"strings"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/answer"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
)

// operation is an operation on objects: the verb that it needs, and its
// implementation.
type operation struct {
	verb string
	do   func(*Host, *request) (any, *failure)
	// existing means that the object must exist.
	existing bool
}

// operations are the operations on objects that this host implements.
// config_get and event_record are separate.
var operations = map[string]operation{
	"api_get":    {"get", func(_ *Host, r *request) (any, *failure) { return r.old, nil }, true},
	"api_list":   {"list", (*Host).list, false},
	"api_create": {"create", (*Host).create, false},
	"api_update": {"update", (*Host).update, true},
	"api_patch":  {"patch", (*Host).patch, true},
	"api_apply":  {"patch", (*Host).apply, false},
	"api_delete": {"delete", (*Host).delete, true},
	"cache_get":  {"get", (*Host).cacheGet, false},
	"cache_list": {"list", (*Host).cacheList, false},
}

// caps lists all operations and the other abilities of this host (abi/ABI.md,
// section 9).
var caps = append(
	[]string{"declare", "finalize", "map", "filter", "configure", "admission", "convert", "config_get", "event_record"}, slices.Sorted(maps.Keys(operations))...,
)

// request is a decoded request of an api_* operation (abi/ABI.md, section 6).
type request struct {
	op     string
	id     id
	ref    wasmctl.ObjectRef
	sub    string
	object map[string]any
	msg    map[string]any
	old    map[string]any // the object in the cluster; nil if there is none
}

func (r *request) bool(key string) bool { b, _ := r.msg[key].(bool); return b }

// call runs an operation and returns its status and body.
func (h *Host) call(op string, msg []byte) (int32, []byte) {
	status, body, err := answer.To(msg, func(m map[string]any) (any, *wasmctl.Error) {
		body, fail := h.do(op, m)
		if fail != nil {
			return nil, &fail.Error
		}
		return body, nil
	})
	if err != nil {
		h.t.Errorf("guesttest: %s: %v", op, err)
	}
	return status, body
}

// do runs an operation and records the call.
func (h *Host) do(op string, m map[string]any) (any, *failure) {
	c := Call{Op: op}
	body, fail := h.dispatch(op, m, &c)
	if fail != nil {
		c.Status = fail.Status
	}
	h.calls = append(h.calls, c)
	return body, fail
}

func (h *Host) dispatch(op string, m map[string]any, c *Call) (any, *failure) {
	if !works(op, h.entered) {
		return nil, apiFailure(wasmctl.StatusUnavailable, "Unavailable", op+" cannot be used in "+h.entered)
	}
	switch op {
	case "config_get":
		return h.setting(str(m, "key")), nil
	case "event_record":
		return h.record(m)
	}
	r, fail := h.parse(op, m)
	if r != nil {
		c.Ref, c.Subresource = r.ref, r.sub
	}
	if fail != nil {
		return nil, fail
	}
	if faults := h.faults[op]; len(faults) > 0 {
		h.faults[op] = faults[1:]
		return nil, &failure{Error: faults[0]}
	}
	if fail := h.allowed(r); fail != nil {
		return nil, fail
	}
	served, ok := operations[op]
	if !ok {
		return nil, notServed(op)
	}
	if r.old = h.store.objects[r.id]; r.old == nil && served.existing {
		return nil, h.notFound(r)
	}
	before := h.store.version
	body, fail := served.do(h, r)
	c.Changed = h.store.version != before
	return body, fail
}

// works reports whether an operation is available in an entry function
// (abi/ABI.md, section 5).
func works(op, entered string) bool {
	switch entered {
	case entry.Map, entry.Filter, entry.Validate, entry.Default:
		return op == "config_get" || op == "cache_get" || op == "cache_list"
	case entry.Configure, entry.Convert:
		return op == "config_get"
	}
	return true
}

// setting returns one setting, or all settings if key is empty.
func (h *Host) setting(key string) any {
	all := map[string]any{}
	for _, from := range []map[string]string{h.manifest.Config, h.config} {
		for k, v := range from {
			all[k] = v
		}
	}
	if key == "" {
		return all
	}
	return all[key]
}

// parse reads the reference of the request from its keys, otherwise from its
// object. If both have a value, the values must be equal.
func (h *Host) parse(op string, m map[string]any) (*request, *failure) {
	r := &request{op: op, msg: m, sub: str(m, "subresource")}
	r.object, _ = m["object"].(map[string]any)
	var fail *failure
	field := func(key string, path ...string) string {
		said, inside := str(m, key), str(r.object, path...)
		if said != "" && inside != "" && said != inside && fail == nil {
			fail = badRequest(key + " of the request and of its object differ")
		}
		if said == "" {
			return inside
		}
		return said
	}
	r.ref = wasmctl.ObjectRef{
		APIVersion: field("apiVersion", "apiVersion"), Kind: field("kind", "kind"),
		Namespace: field("namespace", "metadata", "namespace"), Name: field("name", "metadata", "name"),
	}
	r.id = idOfRef(r.ref)
	if fail == nil {
		fail = h.complete(r)
	}
	return r, fail
}

// complete checks that no required key is missing.
func (h *Host) complete(r *request) *failure {
	list := r.op == "api_list" || r.op == "cache_list"
	writesObject := r.op == "api_create" || r.op == "api_update" || r.op == "api_apply"
	switch {
	case r.ref.APIVersion == "" || r.ref.Kind == "":
		return badRequest("apiVersion and kind are needed")
	case writesObject && r.object == nil:
		return badRequest("object is needed")
	case !list && r.ref.Name == "":
		return badRequest("name is needed")
	case h.store.clusterScoped[r.ref.Kind] && r.ref.Namespace != "":
		return badRequest(r.ref.Kind + " is cluster-scoped: it has no namespace")
	case !h.store.clusterScoped[r.ref.Kind] && r.ref.Namespace == "" && !list:
		return badRequest(r.ref.Kind + " is namespaced and there is no default namespace (if it is cluster-scoped, call Host.ClusterScoped)")
	case r.sub != "" && r.sub != "status":
		return notServed("the subresource " + r.sub)
	}
	if r.object != nil { // copy the reference into the object
		r.object["apiVersion"], r.object["kind"] = r.ref.APIVersion, r.ref.Kind
		metadata(r.object)["name"] = r.ref.Name
		if r.ref.Namespace != "" {
			metadata(r.object)["namespace"] = r.ref.Namespace
		}
	}
	return nil
}

func (h *Host) create(r *request) (any, *failure) {
	if r.old != nil {
		return nil, apiFailure(409, "AlreadyExists", h.named(r)+" already exists")
	}
	if str(r.object, "metadata", "resourceVersion") != "" {
		return nil, apiFailure(400, "BadRequest", "resourceVersion should not be set on objects to be created")
	}
	obj := clone(r.object)
	delete(obj, "status")
	for _, k := range []string{"uid", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"} {
		delete(metadata(obj), k)
	}
	return h.insert(r, obj)
}

// insert stores a new object, for create and for an apply that creates.
func (h *Host) insert(r *request, obj map[string]any) (any, *failure) {
	if fail := h.valid(r, obj); fail != nil {
		return nil, fail
	}
	if h.dry(r) {
		return obj, nil
	}
	return h.store.put(r.id, obj, h.now), nil
}

func (h *Host) update(r *request) (any, *failure) {
	custom := strings.Contains(r.id.group, ".") && !strings.HasSuffix(r.id.group, ".k8s.io")
	if custom && str(r.object, "metadata", "resourceVersion") == "" && str(r.msg, "preconditions", "resourceVersion") == "" {
		return nil, apiFailure(422, "Invalid", h.named(r)+" is invalid: metadata.resourceVersion: must be specified for an update")
	}
	return h.overwrite(r, clone(r.object))
}

// overwrite stores a changed object, for every write to an existing object.
func (h *Host) overwrite(r *request, obj map[string]any) (any, *failure) {
	if fail := h.holds(r, obj); fail != nil {
		return nil, fail
	}
	if r.sub == "status" {
		status := obj["status"]
		obj = clone(r.old)
		obj["status"] = status
	} else {
		obj["status"] = cloneAny(r.old["status"])
	}
	if obj["status"] == nil {
		delete(obj, "status")
	}
	delete(metadata(obj), "managedFields")
	if fail := h.valid(r, obj); fail != nil {
		return nil, fail
	}
	if h.dry(r) {
		return obj, nil
	}
	return h.store.replace(r.id, r.old, obj, h.now), nil
}

func (h *Host) delete(r *request) (any, *failure) {
	if fail := h.holds(r, nil); fail != nil || h.dry(r) {
		return r.old, fail
	}
	if len(finalizers(r.old)) > 0 {
		if str(r.old, "metadata", "deletionTimestamp") != "" {
			return r.old, nil
		}
		obj := clone(r.old)
		metadata(obj)["deletionTimestamp"] = h.now.UTC().Format(time.RFC3339)
		return h.store.put(r.id, obj, h.now), nil
	}
	h.store.remove(r.id)
	return map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Success"}, nil
}

func (h *Host) dry(r *request) bool { return h.DryRun || r.bool("dryRun") }
