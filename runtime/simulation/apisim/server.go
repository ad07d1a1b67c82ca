// Package apisim is a small API server in memory, for tests in virtual time.
//
// It is read through HTTP, so that the real client and the real watches can use it: LIST in one piece and in pages, at the newest
// resourceVersion or an older one, WATCH from any point of the history, streamed lists, bookmarks, label selectors, and 410 after a
// compaction. A Plan determines the faults of each request. It is written to with Go methods: Create, Update, Change and Delete maintain
// uids, resourceVersions, generations, finalizers and owner references like the API server. All resources share one version counter.
//
// It starts no goroutine, and every wait ends with the request's context.
package apisim

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// Resource is a kind that a Server serves.
type Resource struct {
	schema.GroupVersionResource
	Kind          string
	ClusterScoped bool
	// Generations means that metadata.generation counts changes outside of metadata and status.
	Generations bool
}

// Server is an API server. It is safe for concurrent use.
type Server struct {
	plan func(*Request) Plan

	mu        sync.Mutex
	version   int64             // guarded by mu; the newest resourceVersion
	uids      int               // guarded by mu
	compacted int64             // guarded by mu; older versions are forgotten
	tables    map[string]*table // by resource name; the map never changes
	changed   chan struct{}     // guarded by mu; closed at the next change, or when streams must check again
	streams   []*stream         // guarded by mu; open streams
	listed    map[string]bool   // guarded by mu; scopes for which a complete list was sent
}

// table holds one resource. It is guarded by Server.mu.
type table struct {
	Resource
	objects map[abi.Key]*state
	history []*state // all states ever, by version
}

// state is an object from one resourceVersion to the next. It is immutable, except for json.
type state struct {
	version int64
	at      time.Time
	key     abi.Key
	object  *unstructured.Unstructured
	gone    bool   // object is the final state
	before  *state // nil if the object did not exist
	json    []byte // of object; encoded on first use; guarded by Server.mu
}

// New returns a Server. plan is called for each request, possibly concurrently; nil means no faults.
func New(plan func(*Request) Plan, resources ...Resource) *Server {
	if plan == nil {
		plan = func(*Request) Plan { return Plan{} }
	}
	s := &Server{plan: plan, version: 10, tables: map[string]*table{}, changed: make(chan struct{}), listed: map[string]bool{}}
	for _, r := range resources {
		s.tables[r.Resource] = &table{Resource: r, objects: map[abi.Key]*state{}}
	}
	return s
}

// Key returns the key of an object.
func Key(o *unstructured.Unstructured) abi.Key {
	return abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Get returns an object, or a NotFound error.
func (s *Server) Get(resource string, key abi.Key) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	if now := t.objects[key]; now != nil {
		return now.object.DeepCopy(), nil
	}
	return nil, t.notFound(key)
}

// All returns the objects of a resource by key. They must not be changed.
func (s *Server) All(resource string) map[abi.Key]*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[abi.Key]*unstructured.Unstructured{}
	for key, now := range s.tables[resource].objects {
		all[key] = now.object
	}
	return all
}

// Since finds the last period in which an object of this key matched. It returns the first state of that period, and whether the period is
// over; nil if there was none. The state must not be changed.
func (s *Server) Since(resource string, key abi.Key, match func(*unstructured.Unstructured) bool) (o *unstructured.Unstructured, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	for _, st := range slices.Backward(t.history) {
		if st.key != key || st.gone || !match(st.object) {
			continue
		}
		over = t.objects[key] != st
		for st.before != nil && match(st.before.object) {
			st = st.before
		}
		return st.object, over
	}
	return nil, false
}

// Listed reports whether a complete list of this scope was ever sent.
func (s *Server) Listed(resource, namespace, selector string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed[scopeID(resource, namespace, selector)]
}

func scopeID(resource, namespace, selector string) string {
	return resource + "/" + namespace + "/" + selector
}

// DeletedAfter reports whether an object was deleted at a version later than the given one.
func (s *Server) DeletedAfter(resource string, key abi.Key, version int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tables[resource].history, func(st *state) bool {
		return st.gone && st.key == key && st.version > version
	})
}

// Compact discards the history: watches and lists that start before now get 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.compacted = s.version
}

// at returns the states of a resource as of a version, by key. The caller must hold mu.
func (t *table) at(version int64) []*state {
	last := map[abi.Key]*state{}
	for _, st := range t.history {
		if st.version > version {
			break
		}
		last[st.key] = st
		if st.gone {
			delete(last, st.key)
		}
	}
	all := make([]*state, 0, len(last))
	for _, st := range last {
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b *state) int { return a.key.Compare(b.key) })
	return all
}

// encoded returns the JSON of a state. The caller must hold mu.
func (st *state) encoded() []byte {
	if st.json == nil {
		st.json = encode(st.object.Object)
	}
	return st.json
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: apisim: " + err.Error())
	}
	return b
}

// scope is the part of a resource that a request selects.
type scope struct {
	id        string
	namespace string
	selector  labels.Selector
}

func (sc scope) has(st *state) bool {
	return !st.gone && (sc.namespace == "" || sc.namespace == st.key.Namespace) && sc.selector.Matches(labels.Set(st.object.GetLabels()))
}
