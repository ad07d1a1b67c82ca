// Package apisim is a small API server in memory, for tests in virtual time.
//
// Its reading side is HTTP, so that the real client and the real watches stand
// on it: LIST in one piece and in pages, at the newest resourceVersion or an
// older one, WATCH from any point of the history, streamed lists, bookmarks,
// label selectors, 410 after a compaction. A Plan says for each request what
// goes wrong with it. Its writing side is Go: Create, Update, Change and Delete
// with uids, resourceVersions, generations, finalizers and owner references as
// the API server has them. All resources share one counter of versions.
//
// It starts no goroutine, and every wait ends with the request's context.
package apisim

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Generations says that metadata.generation counts changes of anything but
	// metadata and status.
	Generations bool
}

// Server is the API server. It is safe for concurrent use.
type Server struct {
	plan func(*Request) Plan

	mu        sync.Mutex
	version   int64             // guarded by mu; the newest resourceVersion
	uids      int               // guarded by mu
	compacted int64             // guarded by mu; what is older is forgotten
	tables    map[string]*table // by resource name; the map never changes
	changed   chan struct{}     // guarded by mu; closed at the next change, or where streams have to look anew
	streams   []*stream         // guarded by mu; those that are open
	listed    map[string]bool   // guarded by mu; scopes of which a whole list was sent
}

// table is what there is of one resource. It is guarded by Server.mu.
type table struct {
	Resource
	objects map[abi.Key]*state
	history []*state // every state there ever was, by version
}

// state is an object from one resourceVersion to the next. It never changes,
// but for json.
type state struct {
	version int64
	at      time.Time
	key     abi.Key
	object  *unstructured.Unstructured
	gone    bool   // object is the final state
	before  *state // nil where the object did not exist
	json    []byte // of object; encoded when first asked for; guarded by Server.mu
}

// New returns a Server. plan is asked about each request, by several goroutines
// at once; nil plans nothing.
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

// Since returns the state in which an object of this key began to be as match
// likes, the last time that it was, and whether that is over; nil where it never
// was. It must not be changed.
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

// Listed reports whether a whole list of this scope was ever sent.
func (s *Server) Listed(resource, namespace, selector string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed[scopeID(resource, namespace, selector)]
}

func scopeID(resource, namespace, selector string) string {
	return resource + "/" + namespace + "/" + selector
}

// DeletedAfter reports whether an object was deleted at a later version than
// the given one.
func (s *Server) DeletedAfter(resource string, key abi.Key, version int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tables[resource].history, func(st *state) bool {
		return st.gone && st.key == key && st.version > version
	})
}

// Create creates an object.
func (s *Server) Create(resource string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	if t.objects[Key(o)] != nil {
		return nil, t.exists(Key(o))
	}
	return s.create(t, o), nil
}

// Update replaces an object. One with a resourceVersion that is not the newest
// is a conflict.
func (s *Server) Update(resource string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	now := t.objects[Key(o)]
	if now == nil {
		return nil, t.notFound(Key(o))
	}
	if rv := o.GetResourceVersion(); rv != "" && rv != now.object.GetResourceVersion() {
		return nil, t.conflict(Key(o), "the object has been modified")
	}
	return s.update(t, now, o.DeepCopy()), nil
}

// Change changes an object as it is now, and creates it where it does not
// exist: change is then given one with nothing but its name, if create is set.
// An error of change leaves it as it was, and is returned.
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

// Delete deletes an object, or asks for its deletion where it has finalizers,
// and returns its last state. With a uid, another object of that name is a
// conflict.
func (s *Server) Delete(resource string, key abi.Key, uid string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[resource]
	now := t.objects[key]
	if now == nil {
		return nil, t.notFound(key)
	}
	if uid != "" && uid != string(now.object.GetUID()) {
		return nil, t.conflict(key, "the uid in the precondition is another")
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

// create puts a new object in. The caller holds mu.
func (s *Server) create(t *table, o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	s.uids++
	o.SetUID(uid(s.uids))
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	if t.Generations {
		o.SetGeneration(1)
	}
	return s.put(t, nil, o, false)
}

// update puts the next state of an object in, unless it is the same. The caller
// holds mu.
func (s *Server) update(t *table, now *state, next *unstructured.Unstructured) *unstructured.Unstructured {
	next.SetResourceVersion(now.object.GetResourceVersion())
	next.SetUID(now.object.GetUID())
	if reflect.DeepEqual(now.object.Object, next.Object) {
		return next
	}
	deleting := next.GetDeletionTimestamp() != nil
	if t.Generations && (!sameSpec(now.object, next) || deleting && now.object.GetDeletionTimestamp() == nil) {
		next.SetGeneration(now.object.GetGeneration() + 1)
	}
	return s.put(t, now, next, deleting && len(next.GetFinalizers()) == 0)
}

// put writes a state. The caller holds mu.
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

// wake makes all streams look at what there is. The caller holds mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	for _, o := range []*unstructured.Unstructured{a, b} {
		for field := range o.Object {
			if field != "metadata" && field != "status" && !reflect.DeepEqual(a.Object[field], b.Object[field]) {
				return false
			}
		}
	}
	return true
}

// Compact forgets the history: watches and lists that start before now get 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.compacted = s.version
}

// at returns the states of a resource as of a version, by key. The caller holds
// mu.
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
	slices.SortFunc(all, func(a, b *state) int { return compareKeys(a.key, b.key) })
	return all
}

// encoded returns the JSON of a state. The caller holds mu.
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

// scope is what a request is about of a resource.
type scope struct {
	id        string
	namespace string
	selector  labels.Selector
}

func (sc scope) has(st *state) bool {
	return !st.gone && (sc.namespace == "" || sc.namespace == st.key.Namespace) && sc.selector.Matches(labels.Set(st.object.GetLabels()))
}
