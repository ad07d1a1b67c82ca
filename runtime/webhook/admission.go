// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// admit answers an AdmissionReview, of which b is the msgpack.
func (s *Server) admit(ctx context.Context, to target, b []byte, memory *lease) ([]byte, error) {
	r, err := readReview(b, "AdmissionReview", "admission.k8s.io/v1", "admission.k8s.io/v1beta1")
	if err != nil {
		return nil, err
	}
	a, err := readAdmission(r.request)
	if err == nil {
		err = charge(a, memory)
	}
	if err != nil {
		return nil, err
	}
	a.Controller, a.Webhook = to.controller, to.path
	w := to.routes.webhook(to.path)
	switch {
	case w.Selects(a):
	case to.former.webhook(to.path).Selects(a):
		return answer(r, a, &admissionv1.AdmissionResponse{Allowed: true}) // the configuration is that of the module before a swap
	default:
		return nil, refuse(http.StatusForbidden, "the webhook %s of module %s does not select this request: %s of %s.%s", a.Webhook, to.routes.Digest, a.Operation, a.Target.Resource, a.Target.Group)
	}
	leave, err := to.gate.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	object := a.Object
	res, err := to.Admit(ctx, w, a)
	if err != nil {
		return nil, err
	}
	response := verdict(a, &res)
	response.AuditAnnotations = audit(res.Audit, to.controller, to.routes.Digest)
	if res.Object != nil {
		if response.Patch, err = patchOf(w, object, &res, memory); err != nil {
			return nil, err
		}
		if response.Patch != nil {
			response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}
	}
	return answer(r, a, response)
}

// answer returns the JSON of the review with a response.
func answer(r review, a *abi.Admission, response *admissionv1.AdmissionResponse) ([]byte, error) {
	response.UID = types.UID(a.ID)
	return json.Marshal(&admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: r.apiVersion, Kind: r.kind}, Response: response})
}

// readAdmission reads the request of an AdmissionReview.
func readAdmission(b []byte) (*abi.Admission, error) {
	f := &fields{b: b, path: "request."}
	user := f.within("userInfo")
	a := &abi.Admission{
		ID: f.text("uid"), Operation: abi.Operation(f.text("operation")), Target: f.target("kind", "resource", "subResource"),
		Key: abi.Key{Namespace: f.text("namespace"), Name: f.text("name")}, DryRun: f.flag("dryRun"), Options: f.object("options"),
		User: abi.User{Name: user.text("username"), UID: user.text("uid"), Groups: user.texts("groups"), Extra: user.extra()},
	}
	f.join(user)
	if a.Requested = f.target("requestKind", "requestResource", "requestSubResource"); a.Requested.Kind == "" {
		a.Requested = a.Target
	}
	if a.Operation != abi.OperationDelete {
		a.Object = withoutManagedFields(f.object("object"))
	}
	if a.Operation != abi.OperationCreate {
		a.Old = withoutManagedFields(f.object("oldObject"))
	}
	switch {
	case f.err != nil:
		return nil, f.err
	case a.ID == "":
		return nil, refuse(http.StatusBadRequest, "request.uid: is required")
	case !slices.Contains(abi.Operations, a.Operation):
		return nil, refuse(http.StatusBadRequest, "request.operation: %.100q is none of %q", a.Operation, abi.Operations)
	case a.Target.Kind == "" || a.Target.Resource == "":
		return nil, refuse(http.StatusBadRequest, "request.kind and request.resource: are required")
	case a.Object == nil && (a.Operation == abi.OperationCreate || a.Operation == abi.OperationUpdate):
		return nil, refuse(http.StatusBadRequest, "request.object: is required for %s", a.Operation)
	case a.Old == nil && (a.Operation == abi.OperationUpdate || a.Operation == abi.OperationDelete):
		return nil, refuse(http.StatusBadRequest, "request.oldObject: is required for %s", a.Operation)
	}
	for _, o := range [][]byte{a.Object, a.Old} {
		if o != nil && !isOf(o, &a.Target) {
			return nil, refuse(http.StatusBadRequest, "request.object and request.oldObject: must be of the kind in request.kind, with metadata")
		}
	}
	return a, nil
}

// charge charges for the copies of the objects without managedFields, and for their labels, which the selector of a canary reads.
func charge(a *abi.Admission, memory *lease) error {
	n := int64(0)
	for _, o := range [][]byte{a.Object, a.Old} {
		_, labels := packed.Measure(packed.Find(packed.Find(o, "metadata"), "labels"))
		n += int64(len(o)) + labels
	}
	return memory.take(n)
}

// isOf reports whether an object is of a kind, and its metadata is a map.
func isOf(object []byte, t *abi.Target) bool {
	apiVersion := t.Version
	if t.Group != "" {
		apiVersion = t.Group + "/" + t.Version
	}
	meta := packed.Find(object, "metadata")
	return textOf(packed.Find(object, "apiVersion")) == apiVersion && textOf(packed.Find(object, "kind")) == t.Kind &&
		(packed.IsNil(meta) || packed.FormOf(meta) == packed.Map)
}

// target reads the kind and the resource of a request.
func (f *fields) target(kind, resource, subresource string) abi.Target {
	k, r := f.within(kind), f.within(resource)
	t := abi.Target{Group: r.text("group"), Version: r.text("version"), Kind: k.text("kind"), Resource: r.text("resource"), Subresource: f.text(subresource)}
	f.join(k)
	f.join(r)
	return t
}

// extra reads the extra fields of a user.
func (f *fields) extra() map[string][]string {
	v := f.object("extra")
	c := packed.At(v)
	n := 0
	if v != nil {
		n = c.MapLen()
	}
	extra := make(map[string][]string, n)
	for range n {
		key := string(c.Text())
		extra[key] = f.textsOf("extra", c.Value())
	}
	return extra
}

// patchOf returns the patch for the object that the guest returned, or nil.
func patchOf(w *abi.Webhook, request []byte, res *abi.AdmissionResult, memory *lease) ([]byte, error) {
	if w.Type != abi.WebhookDefault || request == nil {
		return nil, refuse(http.StatusInternalServerError, "the module changes an object that it must not change")
	}
	if string(res.Object) == string(request) || string(res.Object) == string(res.Base) {
		return nil, nil
	}
	var maps [3]map[string]any
	for i, b := range [][]byte{request, res.Base, res.Object} {
		if b == nil {
			continue
		}
		_, decoded := packed.Measure(b)
		if err := memory.take(int64(len(b)) + copies*decoded); err != nil {
			return nil, err
		}
		m, err := abi.DecodeObject(b)
		if err != nil {
			return nil, refuse(http.StatusInternalServerError, "the object of the module cannot be read: %v", err)
		}
		maps[i] = m
	}
	patch, err := makePatch(maps[0], maps[1], maps[2])
	if err != nil {
		return nil, refuse(http.StatusInternalServerError, "the object of the module gives no patch: %v", err)
	}
	return patch, nil
}
