package memapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// remove serves a DELETE.
func (s *Server) remove(r *Request) (int, any, error) {
	if s.live(r) == nil {
		return 0, nil, r.notFound()
	}
	var opts metav1.DeleteOptions
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &opts); err != nil {
			return 0, nil, apierrors.NewBadRequest("body: " + err.Error())
		}
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

// deletion returns the options of a deletion; an empty uid is any.
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
	r.dryRun = r.dryRun || len(opts.DryRun) > 0
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

// markDeleted lets an object wait for its finalizers.
func (s *Server) markDeleted(k *Kind, o *unstructured.Unstructured) {
	now, zero := s.now(), int64(0)
	o.SetDeletionTimestamp(&now)
	o.SetDeletionGracePeriodSeconds(&zero)
	if k.generations(o.Object) {
		o.SetGeneration(o.GetGeneration() + 1)
	}
}

// checkFinalizers refuses new finalizers of an object that is being deleted.
func (r *Request) checkFinalizers(was, o *unstructured.Unstructured) error {
	if was.GetDeletionTimestamp() == nil {
		return nil
	}
	for _, f := range o.GetFinalizers() {
		if !slices.Contains(was.GetFinalizers(), f) {
			e := r.invalid("metadata.finalizers", "Forbidden: no new finalizers can be added if the object is being deleted")
			e.ErrStatus.Details.Causes[0].Type = "FieldValueForbidden"
			return e
		}
	}
	return nil
}

// checkOwners holds that an object has one controller at most, and that owners
// are whole.
func (r *Request) checkOwners(o *unstructured.Unstructured) error {
	controllers := 0
	for _, owner := range o.GetOwnerReferences() {
		if owner.APIVersion == "" || owner.Kind == "" || owner.Name == "" || owner.UID == "" {
			return r.invalid("metadata.ownerReferences", "apiVersion, kind, name and uid must not be empty")
		}
		if owner.Controller != nil && *owner.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		return r.invalid("metadata.ownerReferences", "Only one reference can have Controller set to true")
	}
	return nil
}
