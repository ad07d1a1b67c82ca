// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func (s *server) patch(r *request) (map[string]any, error) {
	if r.sub == "scale" {
		return s.patchScale(r)
	}
	old, err := s.stored(r)
	if err != nil {
		return nil, err
	}
	now, err := s.patched(r, old)
	if err != nil {
		return nil, err
	}
	if r.sub != "status" {
		r.sub = "" // patches of other subresources apply to the object
	}
	return s.replace(r, old, now, true)
}

// patched returns the object after the patch of the request.
func (s *server) patched(r *request, old map[string]any) (map[string]any, error) {
	patch, err := r.asText()
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch kind := text(r.msg, "patchType"); kind {
	case "merge":
		after, err = jsonpatch.MergePatch(before, patch)
	case "json":
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = p.Apply(before)
		}
	case "strategic":
		after, err = s.strategic(r.gvk, before, patch)
	default:
		return nil, fmt.Errorf("the fake does not serve patches of type %s", kind)
	}
	if err != nil {
		return nil, refused(err)
	}
	var now map[string]any
	return now, utiljson.Unmarshal(after, &now)
}

// refused returns the answer to a patch that does not apply.
func refused(err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "the patch does not apply: " + err.Error(),
	}}
}

// strategic applies a strategic merge patch, by the tags of the Go type.
func (s *server) strategic(gvk schema.GroupVersionKind, before, patch []byte) ([]byte, error) {
	typ, err := s.own.New(gvk)
	if err != nil {
		return nil, err
	}
	if _, ok := typ.(runtime.Unstructured); ok {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "strategic merge patches need the Go type of " + gvk.Kind + ": add it to the scheme",
		}}
	}
	return strategicpatch.StrategicMergePatch(before, patch, typ)
}

// ofStatus marks the manager of an applied status, which owns those fields
// separately from the other fields that it applied.
const ofStatus = "/status"

// apply implements server-side apply.
func (s *server) apply(r *request) (map[string]any, error) {
	force := r.msg["force"] == true
	o := metav1.PatchOptions{FieldManager: r.manager(), Force: &force}
	if errs := validation.ValidatePatchOptions(&o, types.ApplyPatchType); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", errs)
	}
	old, err := s.stored(r)
	if err != nil && (!apierrors.IsNotFound(err) || r.sub != "") {
		return nil, err
	}
	body, err := s.applied(r, old)
	if err != nil {
		return nil, err
	}
	if r.dry() {
		return body, nil
	}
	if r.sub != "" {
		o.FieldManager += ofStatus
	}
	if err := s.tracker.Apply(r.resource(), &unstructured.Unstructured{Object: body}, r.namespace, o); err != nil {
		return nil, err
	}
	now, err := s.stored(r)
	if err != nil {
		return nil, err
	}
	if text(old, "metadata", "deletionTimestamp") != "" && len(finalizers(now)) == 0 {
		return s.shown(r.gvk, now), s.tracker.Delete(r.resource(), r.namespace, r.name)
	}
	return s.shown(r.gvk, now), nil
}

// applied returns the object that the tracker applies: without the status, or
// only the status. old is nil if the object does not exist.
func (s *server) applied(r *request, old map[string]any) (map[string]any, error) {
	body := map[string]any{"metadata": map[string]any{}}
	body["apiVersion"], body["kind"] = r.gvk.ToAPIVersionAndKind()
	switch {
	case r.sub == "":
		for key, v := range r.object {
			if key != "status" || !s.hasStatus[r.gvk] {
				body[key] = v
			}
		}
	case r.sub == "status" && s.hasStatus[r.gvk]:
		body["status"] = r.object["status"]
	default:
		return nil, r.notFound()
	}
	version, has := text(r.object, "metadata", "resourceVersion"), text(old, "metadata", "resourceVersion")
	uid := text(r.object, "metadata", "uid")
	if old == nil {
		if uid != "" {
			return nil, r.conflict("the applied object has the uid %s, and there is no object", uid)
		}
	} else if version != "" && version != has || uid != "" && uid != text(old, "metadata", "uid") {
		return nil, r.conflict("object was modified")
	}
	md := metadata(body)
	md["name"] = r.name
	if r.namespace != "" {
		md["namespace"] = r.namespace
	}
	if old != nil {
		delete(md, "deletionTimestamp")
		if at := text(old, "metadata", "deletionTimestamp"); at != "" {
			md["deletionTimestamp"] = at
		}
	}
	var err error
	md["resourceVersion"], err = s.next(has)
	return body, err
}

// showManager formats an entry of managedFields as the API server does.
func showManager(entry any) {
	m, _ := entry.(map[string]any)
	if name, ok := strings.CutSuffix(text(m, "manager"), ofStatus); ok {
		m["manager"], m["subresource"] = name, "status"
	}
}
