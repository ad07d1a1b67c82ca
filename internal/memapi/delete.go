// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// remove serves a DELETE.
func (s *Server) remove(r *Request) (int, any, error) {
	var opts metav1.DeleteOptions
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &opts); err != nil {
			return 0, nil, apierrors.NewBadRequest("body: " + err.Error())
		}
		r.dryRun = len(opts.DryRun) > 0 // the body overrides the query
	}
	if errs := validation.ValidateDeleteOptions(&opts); len(errs) > 0 {
		return 0, nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
	}
	object, err := s.delete(r, &opts)
	if err != nil {
		return 0, nil, err
	}
	o := unstructured.Unstructured{Object: object}
	if len(o.GetFinalizers()) > 0 {
		return http.StatusOK, r.versioned(object), nil
	}
	return http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Group: r.Kind.Group, Kind: r.Kind.Resource, Name: r.Name, UID: o.GetUID()},
	}, nil
}

// deletion returns the options of a deletion. If uid is empty, any object matches.
func deletion(uid string) *metav1.DeleteOptions {
	if uid == "" {
		return &metav1.DeleteOptions{}
	}
	return metav1.NewPreconditionDeleteOptions(uid)
}

// delete deletes an object, or marks it as deleted if it has finalizers, and returns its
// last state. The caller holds mu.
func (s *Server) delete(r *Request, opts *metav1.DeleteOptions) (map[string]any, error) {
	live := s.live(r)
	if live == nil {
		return nil, r.notFound()
	}
	o := (&unstructured.Unstructured{Object: live}).DeepCopy()
	if p := opts.Preconditions; p != nil {
		if p.UID != nil && *p.UID != o.GetUID() {
			return nil, r.conflict("Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, o.GetUID())
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
			return nil, r.conflict("Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", *p.ResourceVersion, o.GetResourceVersion())
		}
	}
	if p := opts.PropagationPolicy; p != nil && *p == metav1.DeletePropagationForeground && !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		o.SetFinalizers(append(o.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
	if len(o.GetFinalizers()) > 0 {
		if o.GetDeletionTimestamp() == nil {
			s.markDeleted(&r.Kind, o)
		}
		return s.commit(r, live, o.Object)
	}
	if !r.dryRun {
		s.version++
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
		s.note(r, live, o.Object, true)
	}
	return o.Object, nil
}

// markDeleted sets the deletion timestamp of an object with finalizers.
func (s *Server) markDeleted(k *Kind, o *unstructured.Unstructured) {
	now, zero := s.now(), int64(0)
	o.SetDeletionTimestamp(&now)
	o.SetDeletionGracePeriodSeconds(&zero)
	if k.generations(o.Object) {
		o.SetGeneration(o.GetGeneration() + 1)
	}
}
