// SPDX-License-Identifier: Apache-2.0

// Package memapi is an API server in memory, in the form of a client's transport: a real
// client sends real requests, without a process, a network or a goroutine.
//
// It implements the behavior of the API server that a reconciler can observe: names, uid,
// resourceVersion, generation and creationTimestamp; conflicts of versions and
// preconditions; writes that change nothing; the status subresource; finalizers and
// deletionTimestamp; dry-run; JSON, merge and strategic merge patches; server-side apply by
// Kubernetes' own code, with the merge keys of the built-in kinds and of
// CustomResourceDefinitions; pruning of unknown fields; selectors and pages of lists; at
// most one controller of an object; watches from any version, with bookmarks and streamed
// lists. TestServer_AnswersAsTheRealOneDoes and TestServer_DiffersInNothing compare it with
// a real API server.
//
// Kubernetes' own code validates metadata and CustomResourceDefinitions, and prunes,
// defaults and validates custom resources, including rules in CEL.
//
// The values of built-in kinds have no defaults. Of their validation, it has names, labels,
// selectors, ports, quantities, required fields, counts and enumerations of the kinds that
// reconcilers write most. testdata/objects.yaml lists objects for which its answer is that
// of the API server, and objects for which it is not. Updates of immutable fields are
// accepted.
//
// It does not convert between versions, run admission, authorize, collect garbage, or serve
// subresources other than status.
package memapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/wasmctl/wasmctl/abi"
)

// Config configures a Server. The zero value serves the kinds of Kubernetes and uses the
// system clock.
type Config struct {
	// Kinds are served in addition to those of Kubernetes.
	Kinds []Kind
	// Untracked disables managed fields, which take most of the time of a write.
	// Server-side apply is then not available.
	Untracked bool
	// Now is the server's clock; if nil, time.Now.
	Now func() time.Time
	// Intercept, if not nil, is called with each request for an object or a list before it
	// is served, and returns the failure to simulate. It must not call the server.
	Intercept func(*Request) Fault
}

// Request is a request for objects.
type Request struct {
	// Verb is get, list, watch, create, update, patch, apply or delete.
	Verb            string
	Kind            Kind
	Namespace, Name string // Name is empty for a list, a watch, and a create
	Subresource     string
	Query           url.Values

	manager     string
	dryRun      bool
	force       bool
	contentType string
	body        []byte
}

// Writes reports whether the request may change an object.
func (r *Request) Writes() bool {
	return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" && !r.dryRun
}

// String formats the request for people: "update apps/v1/Deployment default/web status".
func (r *Request) String() string {
	s := r.Verb + " " + GVKName(r.Kind.GroupVersionKind) + " " + joinName(r.Namespace, r.Name)
	if r.Subresource != "" {
		s += " " + r.Subresource
	}
	return s
}

// GVKName returns a kind as "v1/ConfigMap" or "apps/v1/Deployment".
func GVKName(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() + "/" + gvk.Kind }

func joinName(namespace, name string) string {
	switch {
	case namespace == "":
		return cmp.Or(name, "*")
	case name == "":
		return namespace + "/*"
	}
	return namespace + "/" + name
}

// Change is a write that has changed an object.
type Change struct {
	Request Request
	// Old and New are the object before and after; nil if it did or does not exist. They
	// must not be changed.
	Old, New map[string]any
}

// Server is the API server. It is an http.RoundTripper, safe for concurrent use.
type Server struct {
	cfg   Config
	kinds []Kind // read-only

	mu        sync.Mutex
	tables    map[schema.GroupResource]*table         // guarded by mu
	version   int64                                   // the last resourceVersion; guarded by mu
	compacted int64                                   // older versions are compacted; guarded by mu
	uids      int                                     // guarded by mu
	names     int                                     // counts names made by generateName; guarded by mu
	changes   []Change                                // guarded by mu
	changed   chan struct{}                           // closed when streams must check for new data; guarded by mu
	streams   []*stream                               // the open watches; guarded by mu
	listed    map[string]bool                         // scopes of which a complete list was sent; guarded by mu
	managers  map[written]*managedfields.FieldManager // guarded by mu
}

// New returns a server without objects.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{
		cfg: cfg, tables: map[schema.GroupResource]*table{}, version: 100, changed: make(chan struct{}), listed: map[string]bool{},
		managers: map[written]*managedfields.FieldManager{},
	}
	s.kinds = append(slices.Clone(cfg.Kinds), slices.DeleteFunc(slices.Clone(builtIns()), func(k Kind) bool {
		return slices.ContainsFunc(cfg.Kinds, func(own Kind) bool { return own.GroupVersionKind == k.GroupVersionKind })
	})...)
	return s
}

// Kind returns the kind of this name.
func (s *Server) Kind(gvk schema.GroupVersionKind) (Kind, bool) {
	for _, k := range s.kinds {
		if k.Group == gvk.Group && k.Kind == gvk.Kind && (k.Version == gvk.Version || gvk.Version == "") {
			return k, true
		}
	}
	return Kind{}, false
}

// PutApplied is Put for an object that a field manager has applied: all of it or, if
// subresource is "status", its status. Applying the same object again changes nothing.
func (s *Server) PutApplied(object map[string]any, manager, subresource string) error {
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	k, ok := s.Kind(o.GroupVersionKind())
	if ok && (subresource == "" || k.Status && object[subresource] != nil) {
		managed, err := s.owned(&k, o.Object, manager, subresource)
		if err != nil {
			return fmt.Errorf("object[%s]: %w", o.GetName(), err)
		}
		o.SetManagedFields(append(o.GetManagedFields(), managed...))
	}
	return s.Put(o.Object)
}

// Put stores an object as it is, including its status, finalizers and deletionTimestamp. It
// adds the fields that the API server always sets if they are missing. Put is not recorded
// as a Change.
func (s *Server) Put(object map[string]any) error {
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	k, ok := s.Kind(o.GroupVersionKind())
	switch {
	case !ok:
		return fmt.Errorf("object[%s]: unknown kind %s", o.GetName(), GVKName(o.GroupVersionKind()))
	case o.GetName() == "":
		return fmt.Errorf("object of kind %s: metadata.name is needed", k.Kind)
	case k.Namespaced != (o.GetNamespace() != ""):
		return fmt.Errorf("object[%s]: kind %s: metadata.namespace is wanted if and only if the kind is namespaced (it is: %t)", o.GetName(), k.Kind, k.Namespaced)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.GetUID() == "" {
		o.SetUID(s.newUID())
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(s.now())
	}
	if o.GetGeneration() == 0 && k.generations(o.Object) {
		o.SetGeneration(1)
	}
	s.version++
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	}
	s.store(&k, abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, o.Object, false)
	return nil
}

// Objects returns all objects, ordered by group, resource and name. They must not be
// changed.
func (s *Server) Objects() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []map[string]any
	for _, t := range slices.SortedFunc(maps.Values(s.tables), func(a, b *table) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	}) {
		for _, st := range t.at(s.version, s.version) {
			list = append(list, st.object)
		}
	}
	return list
}

// Changes returns the changes since the last call of Changes.
func (s *Server) Changes() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.changes
	s.changes = nil
	return c
}

// newUID returns the next uid; the sequence is the same for each server. The caller holds
// mu.
func (s *Server) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids))
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	req, found, err := s.parse(r)
	if err != nil {
		return Refuse(r, err), nil
	}
	if found != nil {
		return reply(r, http.StatusOK, found), nil
	}
	var fault Fault
	if s.cfg.Intercept != nil {
		fault = s.cfg.Intercept(req)
	}
	if !pass(r.Context(), fault.Delay) {
		return nil, r.Context().Err()
	}
	if fault.Err != nil && !fault.After {
		return fail(r, fault.Err)
	}
	if req.Verb == "watch" {
		res, err := s.watch(r, req, &fault)
		if err != nil {
			return Refuse(r, err), nil
		}
		return res, nil
	}
	code, body, err := s.serve(req, &fault)
	switch {
	case err != nil:
		return Refuse(r, err), nil
	case fault.Err != nil:
		return fail(r, fault.Err)
	}
	return reply(r, code, body), nil
}
