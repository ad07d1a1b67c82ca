// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest/backed"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// server answers the object requests of a module. A tracker of client-go stores
// the objects.
type server struct {
	mu sync.Mutex
	// given is the scheme of the test. own also has all other kinds that were
	// used so far.
	given, own  *runtime.Scheme
	tracker     testing.ObjectTracker
	owns        bool // the server made the tracker, not the test
	hasStatus   map[schema.GroupVersionKind]bool
	indexes     indexes
	showManaged bool
	counter     *uint64 // global version counter; if nil, each object has its own
}

func newServer(given *runtime.Scheme, converters []managedfields.TypeConverter) *server {
	own := runtime.NewScheme()
	return &server{
		given: given, own: own, owns: true, hasStatus: maps.Clone(builtinStatus),
		tracker: testing.NewFieldManagedObjectTracker(own, serializer.NewCodecFactory(own).UniversalDecoder(), typesOf(converters)),
	}
}

// client returns a client of the module's SDK. Each call gets its own, because
// a client must not be shared between goroutines.
func (s *server) client() *wasmctl.Client {
	return backed.Client(func(op string, msg map[string]any) (any, *wasmctl.Error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		body, err := s.do(op, msg)
		if err != nil {
			return nil, answer(err)
		}
		return body, nil
	})
}

// answer converts an error to the answer of an API server.
func answer(err error) *wasmctl.Error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return &wasmctl.Error{Status: wasmctl.StatusInternal, Reason: "InternalError", Message: err.Error()}
	}
	st := status.Status()
	e := &wasmctl.Error{Status: int(st.Code), Reason: string(st.Reason), Message: st.Message}
	if st.Details != nil {
		e.Details, _ = wasmctl.NewValue(st.Details)
	}
	return e
}

// request is a request for one object, or for all objects of a kind.
type request struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	sub             string
	object          map[string]any // the body
	msg             map[string]any
}

func (r *request) resource() schema.GroupVersionResource { return resourceOf(r.gvk) }

func (r *request) dry() bool { return r.msg["dryRun"] == true }

func (r *request) manager() string { return text(r.msg, "fieldManager") }

// resourceOf returns the resource under which the tracker stores a kind: the
// tracker guesses it by the same function.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return gvr
}

// operations maps the operation names of the ABI to their implementations.
var operations = map[string]func(*server, *request) (map[string]any, error){
	"api_get": (*server).get, "api_list": (*server).list, "api_create": (*server).create, "api_update": (*server).update,
	"api_patch": (*server).patch, "api_apply": (*server).apply, "api_delete": (*server).delete,
}

func (s *server) do(op string, msg map[string]any) (any, error) {
	r := &request{msg: msg, sub: text(msg, "subresource")}
	r.object, _ = msg["object"].(map[string]any)
	named := msg // the object is named by the keys of the request, otherwise by the body
	if text(msg, "kind") == "" {
		named = r.object
		r.namespace, r.name = text(named, "metadata", "namespace"), text(named, "metadata", "name")
	} else {
		r.namespace, r.name = text(msg, "namespace"), text(msg, "name")
	}
	r.gvk = schema.FromAPIVersionAndKind(text(named, "apiVersion"), text(named, "kind"))
	run, ok := operations[op]
	if !ok {
		return nil, fmt.Errorf("the fake does not serve %s", op)
	}
	if err := s.know(r.gvk); err != nil {
		return nil, err
	}
	return run(s, r)
}

// know registers the kind with the tracker: by its Go type, or as unstructured.
func (s *server) know(gvk schema.GroupVersionKind) error {
	if s.own.Recognizes(gvk) {
		return nil
	}
	var obj runtime.Object = &unstructured.Unstructured{}
	if s.given.Recognizes(gvk) {
		var err error
		if obj, err = s.given.New(gvk); err != nil {
			return err
		}
	}
	s.own.AddKnownTypeWithName(gvk, obj)
	s.own.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &metav1.List{})
	return nil
}

// firstVersion is the resourceVersion of the initial objects.
const firstVersion = "999"

// seed adds an object unchanged, or all objects of a list.
func (s *server) seed(obj runtime.Object) error {
	if meta.IsListType(obj) {
		items, err := meta.ExtractList(obj)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := s.seed(item); err != nil {
				return err
			}
		}
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, s.given)
	if err != nil {
		return err
	}
	if err := s.know(gvk); err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0 {
		return fmt.Errorf("%s[%s]: has a deletionTimestamp and no finalizers, so it would be gone; add a finalizer", gvk.Kind, m.GetName())
	}
	if m.GetResourceVersion() == "" {
		first := firstVersion
		if s.counter != nil {
			first, _ = s.next("")
		}
		m.SetResourceVersion(first)
	}
	if err := managedfields.ValidateManagedFields(m.GetManagedFields()); err != nil && s.owns {
		return fmt.Errorf("%s[%s]: invalid managedFields: %w", gvk.Kind, m.GetName(), err)
	}
	stored, err := s.typed(gvk, obj)
	if err != nil {
		return err
	}
	return s.tracker.Add(stored)
}
