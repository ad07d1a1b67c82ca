// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (s *Server) now() metav1.Time { return metav1.NewTime(s.cfg.Now()).Rfc3339Copy() }

// serve carries out a request.
func (s *Server) serve(r *Request, fault *Fault) (code int, body any, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Verb {
	case "list":
		body, err = s.list(r, fault)
		return http.StatusOK, body, err
	case "create":
		return s.create(r)
	case "delete":
		return s.remove(r)
	}
	live := s.live(r)
	var next map[string]any
	if r.Verb == "update" { // its body is validated before the lookup
		if next, err = r.decode(); err != nil {
			return 0, nil, err
		}
	}
	if live == nil && (r.Verb != "apply" || r.Subresource != "") {
		return 0, nil, r.notFound()
	}
	switch r.Verb {
	case "patch":
		if next, err = r.patched(live); err != nil {
			return 0, nil, err
		}
	case "get":
		return http.StatusOK, r.versioned(live), nil
	case "apply":
		return s.apply(r, live)
	}
	body, err = s.write(r, live, next)
	return http.StatusOK, body, err
}

// write makes next the state of the object, and updates its managed fields.
func (s *Server) write(r *Request, live, next map[string]any) (map[string]any, error) {
	next, err := s.tracked(r, live, next) // of the whole request, as in the API server
	if err != nil {
		return nil, err
	}
	if err := s.settle(r, live, next); err != nil {
		return nil, err
	}
	return s.commit(r, live, next)
}

// decode parses the object in the body of a request.
func (r *Request) decode() (map[string]any, error) {
	o, err := r.object(r.body)
	if err != nil {
		return nil, err
	}
	return o, r.pruned(o)
}

// create serves a POST. The caller of this and of all following functions holds mu.
func (s *Server) create(r *Request) (int, any, error) {
	r.Name = ""
	object, err := r.decode()
	if err != nil {
		return 0, nil, err
	}
	o := unstructured.Unstructured{Object: object}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		s.names++
		base := o.GetGenerateName()
		o.SetName(fmt.Sprintf("%s%05d", base[:min(len(base), validation.DNS1123LabelMaxLength-5)], s.names))
	}
	r.Name = o.GetName()
	body, err := s.write(r, nil, object)
	return http.StatusCreated, body, err
}

// commit stores next, which is settled, unless it equals the live object or the request is
// a dry run. It returns the answer.
func (s *Server) commit(r *Request, live, next map[string]any) (map[string]any, error) {
	o := unstructured.Unstructured{Object: next}
	if live == nil && r.Verb == "create" {
		if err := s.checkNew(r, &o); err != nil {
			return nil, err
		}
	}
	defaulted := r.Kind.Schema != nil && r.Kind.Schema.setDefaults(next) // as when the object is read from the storage
	gone := o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
	switch {
	case live != nil && reflect.DeepEqual(withoutTimes(live), withoutTimes(next)) && !gone && !s.table(&r.Kind).objects[r.key()].defaulted:
		return r.versioned(live), nil
	case r.dryRun:
		return r.versioned(next), nil
	}
	s.version++
	if !gone { // the last version appears only in the event of the deletion
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	}
	s.note(r, live, next, gone)
	if !gone {
		s.table(&r.Kind).objects[r.key()].defaulted = defaulted
	}
	return r.versioned(next), nil
}

// note stores the next state of an object; the caller has incremented the version.
func (s *Server) note(r *Request, live, next map[string]any, gone bool) {
	change := Change{Request: *r, Old: live, New: next}
	if gone { // the event of a deletion has the previous state
		o := (&unstructured.Unstructured{Object: live}).DeepCopy()
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
		next, change.New = o.Object, nil
	}
	s.changes = append(s.changes, change)
	s.store(&r.Kind, r.key(), next, gone)
}

// settle restores the fields of next that a client cannot change: the status, or everything
// but the status, and the fields that the API server itself maintains.
func (s *Server) settle(r *Request, live, next map[string]any) error {
	o := unstructured.Unstructured{Object: next}
	version := o.GetResourceVersion()
	_, badVersion := strconv.ParseUint(cmp.Or(version, "0"), 10, 64)
	if live == nil {
		if badVersion != nil && r.Verb != "create" {
			return unclassified(badVersion.Error())
		}
		o.SetUID(s.newUID())
		o.SetCreationTimestamp(s.now())
		o.SetDeletionTimestamp(nil)
		if r.Kind.Status {
			delete(next, "status")
		}
		if r.Kind.generations(next) {
			o.SetGeneration(1)
		}
		return r.validate(nil, &o)
	}
	was := unstructured.Unstructured{Object: live}
	if uid := o.GetUID(); uid != "" && uid != was.GetUID() && r.Verb == "update" {
		return r.conflict("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, was.GetUID())
	}
	if badVersion != nil {
		return unclassified(badVersion.Error())
	} else if version != "" && version != was.GetResourceVersion() {
		return r.conflict("the object has been modified; please apply your changes to the latest version and try again")
	} else if version == "" && r.Verb == "update" && !r.Kind.builtIn {
		return r.invalid("metadata.resourceVersion", "must be specified for an update")
	}
	if r.Subresource == "status" {
		onlyStatus(live, next)
	} else if r.Kind.Status {
		restore(next, live, "status")
	}
	o.SetUID(cmp.Or(o.GetUID(), was.GetUID()))
	o.SetResourceVersion(was.GetResourceVersion())
	o.SetCreationTimestamp(was.GetCreationTimestamp())
	if o.GetDeletionTimestamp() == nil {
		o.SetDeletionTimestamp(was.GetDeletionTimestamp())
	}
	if o.GetDeletionGracePeriodSeconds() == nil {
		o.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	}
	o.SetGeneration(was.GetGeneration())
	if r.Kind.generations(next) && !SameSpec(live, next) {
		o.SetGeneration(was.GetGeneration() + 1)
	}
	return r.validate(&was, &o)
}

// checkNew performs the storage's checks of an object to create.
func (s *Server) checkNew(r *Request, o *unstructured.Unstructured) error {
	if version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil && version != 0 && !r.dryRun {
		return unclassified("resourceVersion should not be set on objects to be created")
	}
	if s.live(r) != nil {
		return apierrors.NewAlreadyExists(r.Kind.GVR().GroupResource(), r.Name)
	}
	return nil
}

// onlyStatus reverts all changes in next except those of the status and of its managed
// fields.
func onlyStatus(live, next map[string]any) {
	n := unstructured.Unstructured{Object: next}
	managed := n.GetManagedFields()
	kept := runtime.DeepCopyJSON(live)
	restore(kept, next, "status")
	if kept["status"] == nil {
		delete(kept, "status")
	}
	clear(next)
	maps.Copy(next, kept)
	n.SetManagedFields(managed)
}

func restore(next, live map[string]any, key string) {
	if v, ok := live[key]; ok {
		next[key] = runtime.DeepCopyJSONValue(v)
		return
	}
	delete(next, key)
}

// generations reports whether metadata.generation counts changes of the spec for objects of
// the kind.
func (k *Kind) generations(object map[string]any) bool {
	_, spec := object["spec"]
	return k.Status || spec
}

// SameSpec reports whether two objects are equal in the fields that metadata.generation
// counts: all but metadata and status.
func SameSpec(a, b map[string]any) bool {
	for _, o := range []map[string]any{a, b} {
		for key := range o {
			if key != "metadata" && key != "status" && key != "apiVersion" && !reflect.DeepEqual(a[key], b[key]) {
				return false
			}
		}
	}
	return true
}

// withoutTimes returns an object without the times in its managed fields: the API server does not update
// them for a write that changes nothing.
func withoutTimes(object map[string]any) map[string]any {
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	managed := o.GetManagedFields()
	for i := range managed {
		managed[i].Time = nil
	}
	o.SetManagedFields(managed)
	o.SetAPIVersion("") // any version of the resource
	return o.Object
}

// versioned returns the object in the version that the request names.
func (r *Request) versioned(object map[string]any) map[string]any {
	if object["apiVersion"] == r.Kind.GroupVersion().String() {
		return object
	}
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	o.SetGroupVersionKind(r.Kind.GroupVersionKind)
	return o.Object
}
