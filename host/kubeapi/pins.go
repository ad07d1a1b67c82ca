// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// neverVersion is a version that no object has. The API server compares it with the version of an
// existing object, and ignores it when it creates one. So an apply with this version can only
// create.
const neverVersion = "1"

// pins bind a write to the state against which it was judged.
type pins struct {
	uid, version string
	// keepManagers leaves the owners of fields to the API server.
	keepManagers bool
	// claimed means that the version is that of a child which no other object controls.
	claimed bool
}

// takenOver follows the version of a child whose fields were taken over. A judged apply is judged again.
func (p *pins) takenOver(version string) {
	switch {
	case !p.claimed:
	case p.keepManagers:
		p.claimed = false
	default:
		p.version = version
	}
}

// version identifies an object in a certain state.
type version struct{ UID, ResourceVersion string }

func versionOf(object map[string]any) version {
	meta, _ := object["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	v, _ := meta["resourceVersion"].(string)
	return version{uid, v}
}

// wantedUID returns the UID in a request.
func (r *request) wantedUID() string {
	if r.Preconditions != nil && r.Preconditions.UID != "" {
		return r.Preconditions.UID
	}
	if patch, ok := r.patch.(map[string]any); ok {
		return versionOf(patch).UID
	}
	return versionOf(r.object).UID
}

// wantsVersion reports whether a request has a resourceVersion.
func (r *request) wantsVersion() bool {
	patch, _ := r.patch.(map[string]any)
	return r.Preconditions != nil && r.Preconditions.ResourceVersion != "" ||
		versionOf(r.object).ResourceVersion != "" || versionOf(patch).ResourceVersion != ""
}

// lostPins reports whether the API server has refused a write because of its pins. The write may be
// valid for the current object, unless another object has become its controller.
func (r *request) lostPins(err error) bool {
	return r.pins != pins{} && !r.pins.claimed && apierrors.IsConflict(err) && len(fieldConflicts(err)) == 0 && !r.wantsVersion()
}

// pinned returns the body with its pins. They are at the end, so that nothing from the guest
// follows.
func (r *request) pinned() ([]byte, error) {
	set := map[string]any{}
	if r.pins.uid != "" {
		set["uid"] = r.pins.uid
	}
	if r.pins.version != "" {
		set["resourceVersion"] = r.pins.version
	}
	if ops, ok := r.patch.([]any); ok {
		ops = slices.Clone(ops)
		if r.pins.keepManagers {
			set["managedFields"] = nil // null means absent; [] would reset them
		}
		for _, key := range slices.Sorted(maps.Keys(set)) {
			ops = append(ops, operation("add", "/metadata/"+key, set[key]))
		}
		return r.texts.AppendJSON(nil, ops)
	}
	body, isPatch := r.patch.(map[string]any)
	if !isPatch {
		body = r.object
	}
	meta, err := metadata(body, "object")
	if err != nil {
		return nil, err
	}
	body, meta = maps.Clone(body), maps.Clone(meta)
	if r.pins.keepManagers {
		if delete(meta, "managedFields"); isPatch {
			set["managedFields"] = nil
		}
	}
	maps.Copy(meta, set)
	body["metadata"] = meta
	return r.texts.AppendJSON(nil, body)
}

// patchesManagers reports whether a write would change the owners of fields. Its pins prevent that
// anyway: this is for a refusal with the reason.
func (r *request) patchesManagers(before map[string]any) bool {
	switch patch := r.patch.(type) {
	case map[string]any:
		meta, _ := patch["metadata"].(map[string]any)
		return meta["managedFields"] != nil
	case []any:
		return slices.ContainsFunc(patch, func(op any) bool {
			o, _ := op.(map[string]any)
			return o["op"] != "test" && (leadsToManagers(o["path"]) || o["op"] == "move" && leadsToManagers(o["from"]))
		})
	}
	sent, _ := r.object["metadata"].(map[string]any)
	was, _ := before["metadata"].(map[string]any)
	if sent["managedFields"] == nil || before == nil {
		return false
	}
	key := func(m map[string]any) map[string]any { return map[string]any{"managedFields": m["managedFields"]} }
	for range fieldpath.Changed(key(was), key(sent)) {
		return true
	}
	return false
}

// gained returns the fields that an apply makes its manager own.
func (a *API) gained(r *request, before, after map[string]any) fieldpath.Fields {
	manager := a.managerOf(r)
	had := map[string]bool{}
	for p := range fieldpath.Owned(appliedBy(before, manager, r.Subresource), before) {
		had[p.String()] = true
	}
	return fieldpath.Owned(appliedBy(after, manager, r.Subresource), after).
		Without(func(p fieldpath.Path) bool { return len(had) > 0 && had[p.String()] })
}

// appliedBy returns the fields of an object that a manager has applied, according to managedFields.
func appliedBy(object map[string]any, manager, subresource string) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		sub, _ := entry["subresource"].(string)
		if entry["manager"] == manager && entry["operation"] == "Apply" && sub == subresource {
			fields, _ := entry["fieldsV1"].(map[string]any)
			return fields
		}
	}
	return nil
}

// touchesStatusOnly reports whether a write that may touch all of the status certainly touches
// nothing else, whatever the object has. Such a write names nothing else, and removes nothing else
// that its manager owns. An apply removes the fields that it omits, but for a custom resource the
// API server writes only the status.
func (r *request) touchesStatusOnly(limits *fieldpath.Set) bool {
	if r.Subresource != subresourceStatus || !coversAll(limits, theStatus) {
		return false
	}
	switch {
	case r.op == abi.OpAPIApply:
		return !r.kind.BuiltIn() && r.object != nil && r.isStatusOnly(r.object)
	case r.op == abi.OpAPIPatch && r.PatchType == abi.PatchMerge:
		patch, _ := r.patch.(map[string]any)
		return patch != nil && r.isStatusOnly(patch)
	}
	return false
}

func (r *request) isStatusOnly(body map[string]any) bool {
	apiVersion, kind := r.kind.GVK().ToAPIVersionAndKind()
	for key, value := range body {
		switch key {
		case subresourceStatus:
		case "apiVersion":
			if value != apiVersion {
				return false
			}
		case "kind":
			if value != kind {
				return false
			}
		case "metadata":
			meta, ok := value.(map[string]any)
			if !ok {
				return false
			}
			for name := range meta {
				if name != "name" && name != "namespace" && name != "uid" && name != "resourceVersion" {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
