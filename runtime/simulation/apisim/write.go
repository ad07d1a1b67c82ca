package apisim

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// Create creates an object.
func (s *Server) Create(resource string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.Change(resource, Key(o), true, func(now *unstructured.Unstructured) error {
		if now.GetUID() != "" {
			return apierrors.NewAlreadyExists(s.tables[resource].GroupResource(), o.GetName())
		}
		o.DeepCopyInto(now)
		return nil
	})
}

// Update replaces an object. It is a conflict if the object has a resourceVersion other than the newest.
func (s *Server) Update(resource string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.Change(resource, Key(o), false, func(now *unstructured.Unstructured) error {
		if rv := o.GetResourceVersion(); rv != "" && rv != now.GetResourceVersion() {
			return s.tables[resource].conflict(Key(o), "the object has been modified")
		}
		o.DeepCopyInto(now)
		return nil
	})
}

// Change changes the current object. If it does not exist and create is set, change is called with an object that has only a name. If
// change fails, the object is not changed, and the error is returned.
func (s *Server) Change(resource string, key abi.Key, create bool, change func(*unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	now := t.objects[key]
	if now == nil && !create {
		return nil, t.notFound(key)
	}
	next := t.empty(key)
	if now != nil {
		next = now.object.DeepCopy()
	}
	if err := change(next); err != nil {
		return nil, err
	}
	if now == nil {
		return s.create(t, next), nil
	}
	return s.update(t, now, next), nil
}

// Delete deletes an object, or requests its deletion if it has finalizers, and returns its last state. If uid is set, another object of the
// same name is a conflict.
func (s *Server) Delete(resource string, key abi.Key, uid string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	now := t.objects[key]
	if now == nil {
		return nil, t.notFound(key)
	}
	if uid != "" && uid != string(now.object.GetUID()) {
		return nil, t.conflict(key, "the uid differs from the precondition")
	}
	next := now.object.DeepCopy()
	if len(next.GetFinalizers()) == 0 {
		return s.put(t, now, next, true), nil
	}
	if next.GetDeletionTimestamp() == nil {
		at := metav1.NewTime(time.Now())
		next.SetDeletionTimestamp(&at)
	}
	return s.update(t, now, next), nil
}

// create adds a new object. The caller must hold mu.
func (s *Server) create(t *table, o *unstructured.Unstructured) *unstructured.Unstructured {
	s.uids++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	if t.Generations {
		o.SetGeneration(1)
	}
	return s.put(t, nil, o, false)
}

// update stores the next state of an object, unless it is the same. The caller must hold mu.
func (s *Server) update(t *table, now *state, next *unstructured.Unstructured) *unstructured.Unstructured {
	next.SetResourceVersion(now.object.GetResourceVersion())
	next.SetUID(now.object.GetUID())
	if reflect.DeepEqual(now.object.Object, next.Object) {
		return next
	}
	deleting := next.GetDeletionTimestamp() != nil
	if t.Generations && (!memapi.SameSpec(now.object.Object, next.Object) || deleting && now.object.GetDeletionTimestamp() == nil) {
		next.SetGeneration(now.object.GetGeneration() + 1)
	}
	return s.put(t, now, next, deleting && len(next.GetFinalizers()) == 0)
}

// put stores a state. The caller must hold mu.
func (s *Server) put(t *table, before *state, o *unstructured.Unstructured, gone bool) *unstructured.Unstructured {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	next := &state{version: s.version, at: time.Now(), key: Key(o), object: o, gone: gone, before: before}
	t.history = append(t.history, next)
	t.objects[next.key] = next
	if gone {
		delete(t.objects, next.key)
	}
	s.wake()
	return o.DeepCopy()
}

// wake makes all streams check for changes. The caller must hold mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}
