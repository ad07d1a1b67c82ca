// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid returns the answer to an object with an invalid field.
func (r *request) invalid(err *field.Error) error {
	return apierrors.NewInvalid(r.gvk.GroupKind(), r.name, field.ErrorList{err})
}

func (r *request) nameless() error {
	return r.invalid(field.Required(field.NewPath("metadata.name"), "name is required"))
}

func (r *request) conflict(format string, args ...any) error {
	return apierrors.NewConflict(r.resource().GroupResource(), r.name, fmt.Errorf(format, args...))
}

func (r *request) notFound() error {
	return apierrors.NewNotFound(r.resource().GroupResource(), r.name)
}

// create stores a new object unchanged, including its status. It sets neither
// uid nor creationTimestamp.
func (s *server) create(r *request) (map[string]any, error) {
	if r.sub != "" {
		return s.createSub(r)
	}
	md := metadata(r.object)
	if r.name == "" {
		prefix := text(md, "generateName")
		if prefix == "" {
			return nil, r.nameless()
		}
		r.name = prefix[:min(len(prefix), 58)] + rand.String(5)
		md["name"] = r.name
	}
	if text(md, "resourceVersion") != "" {
		return nil, apierrors.NewBadRequest("resourceVersion can not be set for Create requests")
	}
	delete(md, "deletionTimestamp")
	if r.dry() {
		return r.object, nil
	}
	md["resourceVersion"], _ = s.next("")
	obj, err := s.typed(r.gvk, r.object)
	if err != nil {
		return nil, err
	}
	if err := s.tracker.Create(r.resource(), obj, r.namespace, metav1.CreateOptions{FieldManager: r.manager()}); err != nil {
		return nil, err
	}
	return s.get(r)
}

func (s *server) update(r *request) (map[string]any, error) {
	switch {
	case r.name == "":
		return nil, r.nameless()
	case r.dry():
		return r.object, nil
	case r.sub == "scale":
		return s.updateScale(r, r.object)
	}
	old, err := s.stored(r)
	if apierrors.IsNotFound(err) && r.sub == "" && createOnUpdate[r.gvk.GroupKind()] {
		delete(metadata(r.object), "resourceVersion")
		return s.create(r)
	}
	if err != nil {
		return nil, err
	}
	return s.replace(r, old, r.object, unconditional[r.gvk.GroupKind()])
}

// replace replaces old by an object. Without a resourceVersion this needs
// anyVersion.
func (s *server) replace(r *request, old, now map[string]any, anyVersion bool) (map[string]any, error) {
	version := text(now, "metadata", "resourceVersion")
	if version == "" && anyVersion {
		version = text(old, "metadata", "resourceVersion")
	}
	if version != text(old, "metadata", "resourceVersion") {
		return nil, r.conflict("object was modified")
	}
	now, err := s.merged(r, old, now)
	if err != nil {
		return nil, err
	}
	md, oldMeta := metadata(now), metadata(old)
	if text(md, "deletionTimestamp") != text(oldMeta, "deletionTimestamp") {
		return nil, r.invalid(field.Forbidden(field.NewPath("metadata.deletionTimestamp"), "field is immutable"))
	}
	if md["resourceVersion"], err = s.next(version); err != nil {
		return nil, err
	}
	md["managedFields"] = oldMeta["managedFields"]
	if r.dry() {
		return now, nil
	}
	if text(md, "deletionTimestamp") != "" && len(finalizers(now)) == 0 {
		return s.shown(r.gvk, now), s.tracker.Delete(r.resource(), r.namespace, r.name)
	}
	return s.put(r, now)
}

// put stores an existing object.
func (s *server) put(r *request, now map[string]any) (map[string]any, error) {
	obj, err := s.typed(r.gvk, now)
	if err != nil {
		return nil, err
	}
	if err := s.tracker.Update(r.resource(), obj, r.namespace, metav1.UpdateOptions{FieldManager: r.manager()}); err != nil {
		return nil, err
	}
	return s.get(&request{gvk: r.gvk, namespace: r.namespace, name: r.name})
}

// merged returns the object to store: if the status is a subresource, it takes
// the status from one object and all other fields from the other.
func (s *server) merged(r *request, old, now map[string]any) (map[string]any, error) {
	isStatus := r.sub != "" // a write of any subresource changes the status
	switch {
	case isStatus && !s.hasStatus[r.gvk]:
		return nil, r.notFound()
	case !s.hasStatus[r.gvk]:
		return now, nil
	}
	from, into := old, now
	if isStatus {
		from, into = now, old
	}
	out, err := contentOf(into)
	if err != nil {
		return nil, err
	}
	if out["status"] = from["status"]; out["status"] == nil {
		delete(out, "status")
	}
	return out, nil
}

// next returns the next resourceVersion.
func (s *server) next(version string) (string, error) {
	if s.counter != nil {
		*s.counter++
		return strconv.FormatUint(*s.counter, 10), nil
	}
	if version == "" {
		return "1", nil
	}
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return "", fmt.Errorf("resourceVersion %q is not a number", version)
	}
	return strconv.FormatUint(n+1, 10), nil
}

func (s *server) delete(r *request) (map[string]any, error) {
	old, err := s.stored(r)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"uid", "resourceVersion"} {
		want, have := text(r.msg, "preconditions", key), text(old, "metadata", key)
		if want != "" && want != have {
			return nil, r.conflict("the precondition is %s %s, and the object has %s", key, want, have)
		}
	}
	switch {
	case r.dry():
		return success, nil
	case len(finalizers(old)) == 0:
		return success, s.tracker.Delete(r.resource(), r.namespace, r.name)
	case text(old, "metadata", "deletionTimestamp") != "":
		return success, nil
	}
	md := metadata(old)
	md["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	if md["resourceVersion"], err = s.next(text(md, "resourceVersion")); err != nil {
		return nil, err
	}
	_, err = s.put(r, old)
	return success, err
}

// success is the answer to a deletion.
var success = map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Success"}

// asText returns the JSON of a patch.
func (r *request) asText() ([]byte, error) {
	if r.msg["patch"] == nil {
		return nil, errors.New("the patch is empty")
	}
	return json.Marshal(r.msg["patch"])
}
