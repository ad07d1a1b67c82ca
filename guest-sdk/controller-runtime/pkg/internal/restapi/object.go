// SPDX-License-Identifier: Apache-2.0

package restapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collection answers requests for all objects of a kind.
func (s Server) collection(r *http.Request, req *request) (any, error) {
	raw := &metav1.ListOptions{
		LabelSelector: req.query.Get("labelSelector"), FieldSelector: req.query.Get("fieldSelector"),
		ResourceVersion: req.query.Get("resourceVersion"), ResourceVersionMatch: metav1.ResourceVersionMatch(req.query.Get("resourceVersionMatch")),
	}
	opts := &client.ListOptions{Namespace: req.namespace, Continue: req.query.Get("continue"), Raw: raw}
	opts.Limit, _ = strconv.ParseInt(req.query.Get("limit"), 10, 64) // 0 means no limit
	switch r.Method {
	case http.MethodGet:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(req.gvk.GroupVersion().WithKind(req.gvk.Kind + "List"))
		return list, s.Client.List(r.Context(), list, opts)
	case http.MethodDelete:
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(req.gvk)
		return metav1.Status{Status: metav1.StatusSuccess}, s.Client.DeleteAllOf(r.Context(), obj, &client.DeleteAllOfOptions{ListOptions: *opts})
	}
	return nil, apierrors.NewMethodNotSupported(req.GroupResource(), r.Method)
}

// object answers requests for one object.
func (s Server) object(r *http.Request, req *request) (any, error) {
	obj := &unstructured.Unstructured{}
	if sends(r.Method) {
		if err := utiljson.Unmarshal(req.body, &obj.Object); err != nil {
			return nil, apierrors.NewBadRequest("the body is not JSON: " + err.Error())
		}
	}
	named := obj
	if req.subresource != "" && sends(r.Method) {
		named = &unstructured.Unstructured{}
	}
	if named != obj || !sends(r.Method) || named.GetKind() == "" {
		named.SetGroupVersionKind(req.gvk)
	}
	if req.namespace != "" {
		named.SetNamespace(req.namespace)
	}
	if req.name != "" {
		named.SetName(req.name)
	}
	if req.subresource != "" {
		return s.sub(r, req, named, obj)
	}
	return obj, s.call(r, req, obj)
}

// sends reports whether the body of a request is an object.
func sends(method string) bool { return method == http.MethodPost || method == http.MethodPut }

func (s Server) call(r *http.Request, req *request, obj *unstructured.Unstructured) error {
	ctx, dry, manager := r.Context(), req.query["dryRun"], req.query.Get("fieldManager")
	switch r.Method {
	case http.MethodGet:
		return s.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	case http.MethodPost:
		return s.Client.Create(ctx, obj, &client.CreateOptions{DryRun: dry, FieldManager: manager})
	case http.MethodPut:
		return s.Client.Update(ctx, obj, &client.UpdateOptions{DryRun: dry, FieldManager: manager})
	case http.MethodPatch:
		return s.Client.Patch(ctx, obj, req.patch(), req.patchOptions())
	case http.MethodDelete:
		o := &metav1.DeleteOptions{}
		if err := json.Unmarshal(req.body, o); err != nil && len(req.body) > 0 {
			return apierrors.NewBadRequest("the body is not JSON: " + err.Error())
		}
		return s.Client.Delete(ctx, obj, &client.DeleteOptions{
			GracePeriodSeconds: o.GracePeriodSeconds, Preconditions: o.Preconditions, PropagationPolicy: o.PropagationPolicy, DryRun: dry,
		})
	}
	return apierrors.NewMethodNotSupported(req.GroupResource(), r.Method)
}

// sub answers requests for a subresource of the object named.
func (s Server) sub(r *http.Request, req *request, named, body *unstructured.Unstructured) (any, error) {
	ctx, c := r.Context(), s.Client.SubResource(req.subresource)
	dry, manager := req.query["dryRun"], req.query.Get("fieldManager")
	update := &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: dry, FieldManager: manager}}
	switch r.Method {
	case http.MethodGet:
		out := &unstructured.Unstructured{}
		return out, c.Get(ctx, named, out)
	case http.MethodPost:
		return body, c.Create(ctx, named, body, &client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: dry, FieldManager: manager}})
	case http.MethodPut:
		if body.GroupVersionKind() == req.gvk {
			return body, c.Update(ctx, body, update)
		}
		update.SubResourceBody = body
		return body, c.Update(ctx, named, update)
	case http.MethodPatch:
		return named, c.Patch(ctx, named, req.patch(), &client.SubResourcePatchOptions{PatchOptions: *req.patchOptions()})
	}
	return nil, apierrors.NewMethodNotSupported(req.GroupResource(), r.Method)
}

func (r *request) patch() client.Patch {
	media, _, _ := strings.Cut(r.media, ";")
	return client.RawPatch(types.PatchType(media), r.body)
}

func (r *request) patchOptions() *client.PatchOptions {
	o := &client.PatchOptions{DryRun: r.query["dryRun"], FieldManager: r.query.Get("fieldManager")}
	if force := r.query.Get("force"); force != "" {
		yes := force == "true"
		o.Force = &yes
	}
	return o
}
