// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"strconv"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// declared is the desired state that a result declares (abi/ABI.md, section 4).
type declared struct {
	apply        []any
	prune, force bool
	status       any
	hasStatus    bool
}

func readDeclared(msg map[string]any) declared {
	d := declared{}
	d.apply, _ = msg["apply"].([]any)
	d.prune, _ = msg["prune"].(bool)
	d.force, _ = msg["force"].(bool)
	d.status, d.hasStatus = msg["status"]
	return d
}

// declare carries out a declared result as a host does: it checks all children,
// applies them in their order, prunes the objects that are not listed, and
// applies the status. It stops at the first error, and does not undo earlier
// steps.
func (h *Host) declare(owner map[string]any, d declared) *wasmctl.Failure {
	listed := map[id]bool{}
	for i, c := range d.apply {
		child, fail := h.prepare(owner, c)
		if fail == nil && listed[idOf(child)] {
			fail = badRequest("it is in the list twice")
		}
		if fail != nil {
			return declareFailure("child["+strconv.Itoa(i)+"]: apply: ", fail, true)
		}
		listed[idOf(child)] = true
		d.apply[i] = child
	}
	for i, child := range d.apply {
		if _, fail := h.do("api_apply", map[string]any{"object": clone(child), "force": d.force}); fail != nil {
			return h.applyFailure(owner, i, child, fail)
		}
	}
	if d.prune {
		if failure := h.prune(owner, listed); failure != nil {
			return failure
		}
	}
	return h.applyStatus(owner, d)
}

// prepare checks a child and makes owner its controller.
func (h *Host) prepare(owner map[string]any, c any) (map[string]any, *failure) {
	child, ok := c.(map[string]any)
	if !ok {
		return nil, badRequest("it is not an object")
	}
	child = clone(child)
	meta := metadata(child)
	kind, namespace, home := str(child, "kind"), str(meta, "namespace"), str(owner, "metadata", "namespace")
	switch scoped := h.store.clusterScoped[kind]; {
	case str(child, "apiVersion") == "" || kind == "" || str(meta, "name") == "":
		return nil, badRequest("apiVersion, kind and metadata.name are needed")
	case scoped && home != "":
		return nil, badRequest(kind + " is cluster-scoped, and an object with a namespace cannot own it")
	case !scoped && home != "" && namespace != "" && namespace != home:
		return nil, badRequest("metadata.namespace " + namespace + " is not the namespace of its owner; an owner reference cannot cross namespaces")
	case !scoped && home == "" && namespace == "":
		return nil, badRequest("metadata.namespace is needed: its owner has no namespace")
	case !scoped && home != "":
		meta["namespace"] = home
	}
	if meta["generateName"] != nil {
		return nil, badRequest("metadata.generateName: a child needs a fixed name")
	}
	if idOf(child) == idOf(owner) {
		return nil, badRequest("it is the reconciled object itself")
	}
	kept := []any{}
	for _, m := range ownerRefs(child) {
		if str(m, "uid") == str(owner, "metadata", "uid") {
			continue
		}
		if m["controller"] == true {
			return nil, badRequest("metadata.ownerReferences: " + str(m, "kind") + " " + str(m, "name") + " cannot be its controller: the reconciled object is")
		}
		kept = append(kept, m)
	}
	meta["ownerReferences"] = append(kept, map[string]any{
		"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": str(owner, "metadata", "name"),
		"uid": str(owner, "metadata", "uid"), "controller": true, "blockOwnerDeletion": true,
	})
	for _, op := range []string{"api_apply", "api_create"} { // server-side apply can create objects, too
		r, fail := h.parse(op, map[string]any{"object": clone(child)})
		if fail == nil {
			fail = h.allowed(r)
		}
		if fail != nil {
			return nil, fail
		}
	}
	return child, nil
}

// prune deletes the objects of owned kinds that owner controls and that the
// result does not list.
func (h *Host) prune(owner map[string]any, listed map[id]bool) *wasmctl.Failure {
	for _, w := range h.manifest.Owns {
		for _, at := range h.sorted(&request{id: id{group: w.Group, kind: w.Kind}}) {
			obj := h.store.objects[at]
			if listed[at] || controllerUID(obj) != str(owner, "metadata", "uid") || str(obj, "metadata", "deletionTimestamp") != "" {
				continue
			}
			msg := map[string]any{
				"apiVersion": obj["apiVersion"], "kind": at.kind, "namespace": at.namespace, "name": at.name,
				"propagationPolicy": "Background", "preconditions": map[string]any{"uid": str(obj, "metadata", "uid")},
			}
			if _, fail := h.do("api_delete", msg); fail != nil && fail.Status != 404 {
				return declareFailure("object["+at.kind+" "+at.name+"]: prune: ", fail, false)
			}
		}
	}
	return nil
}

func (h *Host) applyStatus(owner map[string]any, d declared) *wasmctl.Failure {
	if !d.hasStatus {
		return nil
	}
	ref := refOf(owner)
	msg := map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name,
		"object": map[string]any{"status": d.status}, "subresource": "status", "force": d.force,
	}
	if _, fail := h.do("api_apply", msg); fail != nil {
		return declareFailure("object["+ref.Name+"]: status: ", fail, false)
	}
	return nil
}

// applyFailure distinguishes an object that another object controls from an
// invalid object. The API server refuses both as invalid.
func (h *Host) applyFailure(owner map[string]any, i int, child any, fail *failure) *wasmctl.Failure {
	f := declareFailure("child["+strconv.Itoa(i)+" "+str(child, "kind")+" "+str(child, "metadata", "name")+"]: apply: ", fail, false)
	m, _ := child.(map[string]any)
	if uid := controllerUID(h.store.objects[idOf(m)]); fail.Status == 422 && uid != "" && uid != str(owner, "metadata", "uid") {
		f.Class, f.Reason = wasmctl.ErrorConflict, "ForeignController"
	}
	if fail.Status == 409 {
		f.Reason = "FieldConflict"
	}
	return f
}

// declareFailure classifies an error of a declared result as a host does: it is
// permanent if only another result or another manifest would help.
func declareFailure(where string, fail *failure, invalid bool) *wasmctl.Failure {
	f := &wasmctl.Failure{Kind: wasmctl.FailureError, Class: wasmctl.ErrorTransient, Reason: fail.Reason, Message: where + fail.Message}
	switch {
	case fail.Status == 409:
		f.Class = wasmctl.ErrorConflict
	case fail.Status == wasmctl.StatusDenied:
		f.Class = wasmctl.ErrorPermanent
	case invalid:
		f.Class, f.Reason = wasmctl.ErrorPermanent, "InvalidChild"
	}
	return f
}

// controllerUID returns the UID of the object's controller, or "".
func controllerUID(obj map[string]any) string {
	for _, m := range ownerRefs(obj) {
		if m["controller"] == true {
			return str(m, "uid")
		}
	}
	return ""
}

// ownerRefs returns the owner references of an object, which may be nil.
func ownerRefs(obj map[string]any) []map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	list, _ := meta["ownerReferences"].([]any)
	refs := make([]map[string]any, len(list))
	for i, ref := range list {
		refs[i], _ = ref.(map[string]any)
	}
	return refs
}
