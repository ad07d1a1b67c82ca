// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// selection is a selector, and what it selects in the dumbest terms.
type selection struct {
	text string
	has  func(ref abi.Key, labels map[string]string) bool
}

var (
	labelSelections = []selection{
		{"", func(abi.Key, map[string]string) bool { return true }},
		{"app=x", func(_ abi.Key, l map[string]string) bool { return l["app"] == "x" }},
		{"app!=x", func(_ abi.Key, l map[string]string) bool { return l["app"] != "x" }},
		{"app in (x,y)", func(_ abi.Key, l map[string]string) bool { return l["app"] == "x" || l["app"] == "y" }},
		{"!app", func(_ abi.Key, l map[string]string) bool { return l["app"] == "" }},
		{"app=y,tier", func(_ abi.Key, l map[string]string) bool { return l["app"] == "y" && l["tier"] != "" }},
	}
	fieldSelections = []selection{
		{"", func(abi.Key, map[string]string) bool { return true }},
		{"metadata.name=o1", func(k abi.Key, _ map[string]string) bool { return k.Name == "o1" }},
		{"metadata.name!=o1", func(k abi.Key, _ map[string]string) bool { return k.Name != "o1" }},
		{"metadata.namespace=a,metadata.name!=o2", func(k abi.Key, _ map[string]string) bool { return k.Namespace == "a" && k.Name != "o2" }},
	}
)

// selector is a user whose source the model understands.
type selector struct {
	*user

	account        int
	labels, fields selection
	frozen         map[reflector.ObjectRef]string // what it has seen when its account lost the right
}

// selects reports whether the user must see an object.
func (s *selector) selects(o *unstructured.Unstructured) bool {
	ref, ns := abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, s.sub.Source().Namespace
	return (ns == "" || ns == ref.Namespace) && s.labels.has(ref, o.GetLabels()) && s.fields.has(ref, o.GetLabels())
}

func (s *selector) seen() map[reflector.ObjectRef]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mirror)
}

// cacheModel is a random history of objects, watches, faults and rights of one tenant with two accounts.
type cacheModel struct {
	*testing.T

	rnd    *rand.Rand
	server *memapi.Server
	kind   memapi.Kind
	tenant *watcher.Tenant
	memory process
	sets   [2]*watcher.Set
	users  []*selector
	backup *memapi.Backup // of the server, at some time

	mu      sync.Mutex
	denied  [2]bool // by account; guarded by mu
	failing int     // the number of requests that fail; guarded by mu
	lists   bool    // the API server is one that is listed before it is watched
}

// account is the transport of one account.
type account struct {
	m      *cacheModel
	number int
}

// RoundTrip implements http.RoundTripper.
func (a account) RoundTrip(r *http.Request) (*http.Response, error) {
	<-time.After(time.Millisecond)
	m := a.m
	m.mu.Lock()
	defer m.mu.Unlock()
	answer := func(code int, v any) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: jsonBody(v), Request: r}, nil
	}
	switch {
	case r.URL.Path == "/version" && m.lists:
		return answer(http.StatusOK, map[string]any{"major": "1", "minor": "34"})
	case m.denied[a.number]:
		return answer(http.StatusForbidden, statusOf(errForbidden))
	case m.failing > 0:
		m.failing--
		if m.failing%2 == 0 {
			return nil, syscall.ECONNRESET
		}
		return answer(http.StatusInternalServerError, statusOf(errInternal))
	}
	return m.server.RoundTrip(r)
}

func newCacheModel(t *testing.T, seed uint64) *cacheModel {
	m := &cacheModel{T: t, rnd: rand.New(rand.NewPCG(seed, 0)), server: memapi.New(memapi.Config{Untracked: true})}
	m.kind, _ = m.server.Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	m.lists = seed%2 == 1
	m.tenant = watcher.NewTenant([]int64{0, 1 << 20, 30_000}[seed%3], 0, &m.memory)
	for i := range m.sets {
		client, err := watcher.NewClient(&rest.Config{Host: "http://in-memory", Transport: account{m, i}})
		if err != nil {
			t.Fatal(err)
		}
		m.sets[i] = watcher.NewSet(client, watcher.Config{Tenant: m.tenant, Compress: seed%5 == 0})
	}
	return m
}

// step is one random thing that happens.
func (m *cacheModel) step() {
	switch n := m.rnd.IntN(100); {
	case n < 50:
		m.change()
	case n < 60:
		m.remove()
	case n < 72 && len(m.users) < 20:
		m.subscribe()
	case n < 78 && len(m.users) > 0:
		i := m.rnd.IntN(len(m.users))
		m.users[i].end()
		m.users = slices.Delete(m.users, i, i+1)
	case n < 83:
		m.server.EndStreams(1+m.rnd.IntN(3), memapi.End(m.rnd.IntN(5)))
	case n < 85:
		m.server.Compact()
	case n < 86 && m.backup == nil:
		m.backup = m.server.Backup()
	case n < 86:
		m.server.Restore(m.backup)
		m.backup = nil
	case n < 90:
		m.sets[m.rnd.IntN(2)].ListAgain(func(watcher.Source) bool { return m.rnd.IntN(2) == 0 })
	case n < 94:
		m.mu.Lock()
		m.failing = m.rnd.IntN(6)
		m.mu.Unlock()
	default:
		m.allow(m.rnd.IntN(2), m.rnd.IntN(2) == 0)
	}
	if m.rnd.IntN(3) == 0 {
		after(time.Duration(m.rnd.Int64N(int64(5 * time.Second))))
	}
}

func (m *cacheModel) key() abi.Key {
	return abi.Key{Namespace: string("ab"[m.rnd.IntN(2)]), Name: fmt.Sprint("o", m.rnd.IntN(8))}
}

// change creates or changes an object. It can move into and out of selections.
func (m *cacheModel) change() {
	_, err := m.server.Change(m.kind, m.key(), true, func(o *unstructured.Unstructured) error {
		labels := map[string]string{}
		if app := []string{"x", "y", "z", ""}[m.rnd.IntN(4)]; app != "" {
			labels["app"] = app
		}
		if m.rnd.IntN(2) == 0 {
			labels["tier"] = "1"
		}
		o.SetLabels(labels)
		return unstructured.SetNestedField(o.Object, strings.Repeat("x", m.rnd.IntN(3000)), "data", "k")
	})
	if err != nil {
		m.Fatal(err)
	}
}

func (m *cacheModel) remove() {
	if _, err := m.server.Delete(m.kind, m.key(), ""); err != nil && !apierrors.IsNotFound(err) {
		m.Fatal(err)
	}
}

func (m *cacheModel) subscribe() {
	s := &selector{
		user: newUser(m.T), account: m.rnd.IntN(2), labels: labelSelections[m.rnd.IntN(len(labelSelections))], fields: fieldSelections[m.rnd.IntN(len(fieldSelections))],
	}
	source := watcher.Source{Resource: configMaps, Namespace: []string{"", "", "a", "b"}[m.rnd.IntN(4)], LabelSelector: s.labels.text, FieldSelector: s.fields.text}
	if m.rnd.IntN(4) == 0 {
		source.Metadata, source.Kind = true, "ConfigMap"
	}
	s.subscribe(m.sets[s.account], source)
	m.users = append(m.users, s)
	if m.denied[s.account] {
		after(time.Second) // it may join a watch that has content
		s.frozen = s.seen()
	}
}

// allow grants or revokes the right of an account. A review notices a revocation at once.
func (m *cacheModel) allow(number int, granted bool) {
	m.mu.Lock()
	changed := m.denied[number] == granted
	m.denied[number] = !granted
	m.mu.Unlock()
	if !changed {
		return
	}
	if !granted {
		m.sets[number].ListAgain(func(watcher.Source) bool { return true })
		after(time.Second)
	}
	synctest.Wait()
	for _, s := range m.users {
		switch {
		case s.account != number:
		case !granted:
			s.frozen = s.seen()
		default:
			if diff := cmp.Diff(s.frozen, s.seen()); diff != "" {
				m.Errorf("%s shows changes without a right: %s", s.sub.Source(), diff)
			}
		}
	}
}

// settle ends all faults, and checks everything.
func (m *cacheModel) settle() {
	m.Helper()
	for i := range m.sets {
		m.allow(i, true)
	}
	m.mu.Lock()
	m.failing = 0
	m.mu.Unlock()
	objects := m.server.All(m.kind)
	for i, key := range slices.SortedFunc(maps.Keys(objects), abi.Key.Compare) {
		if i >= 3 { // so many fit each bound, also with the copies of watches of one namespace and of metadata
			if _, err := m.server.Delete(m.kind, key, ""); err != nil {
				m.Fatal(err)
			}
		}
	}
	after(5 * time.Minute)
	stored := map[*reflector.Object]int{}
	copies := map[copied]*reflector.Object{}
	for _, s := range m.users {
		s.phase(watcher.Ready)
		m.compare(s)
	}
	for _, sub := range m.distinct() {
		for _, o := range sub.Store().List() {
			stored[o]++
			at := copied{sub.Source().Namespace, sub.Source().Metadata, o.Ref()}
			if first := copies[at]; first != nil && first != o {
				m.Errorf("%s has a second copy of %s", sub.Source(), o.Ref())
			}
			copies[at] = o
		}
	}
	want := int64(0)
	for o, n := range stored {
		want += o.Cost() + 100*int64(n-1)
	}
	if got := m.tenant.Bytes(); got != want {
		m.Errorf("%d bytes are charged, want %d", got, want)
	}
	if taken := m.memory.taken.Load(); taken < want || taken > want+4<<20 {
		m.Errorf("%d bytes of memory are taken for %d bytes of objects", taken, want)
	}
}

// copied is an object in the stores of one kind of watch.
type copied struct {
	namespace string
	metadata  bool
	ref       reflector.ObjectRef
}

// distinct returns one subscription of each watch.
func (m *cacheModel) distinct() []*watcher.Subscription {
	type watch struct {
		account int
		source  watcher.Source
	}
	one := map[watch]*watcher.Subscription{}
	for _, s := range m.users {
		one[watch{s.account, s.sub.Source()}] = s.sub
	}
	return slices.Collect(maps.Values(one))
}

// compare checks that the user's events and its store are what its selectors select.
func (m *cacheModel) compare(s *selector) {
	m.Helper()
	want, store := map[reflector.ObjectRef]string{}, map[reflector.ObjectRef]string{}
	for ref, o := range m.server.All(m.kind) {
		if !s.selects(o) {
			continue
		}
		want[ref] = o.GetResourceVersion()
		if got := s.sub.Store().Get(ref); got != nil && !s.sub.Source().Metadata {
			packed, err := reflector.Pack(o.DeepCopy().Object, reflector.Options{})
			if err != nil {
				m.Fatal(err)
			}
			if !got.Equal(packed) {
				m.Errorf("%s: %s is another state", s.sub.Source(), ref)
			}
		}
	}
	for _, o := range s.sub.Store().List() {
		store[o.Ref()] = o.ResourceVersion()
	}
	if diff := cmp.Diff(want, s.seen()); diff != "" {
		m.Errorf("%s: events against the model: %s", s.sub.Source(), diff)
	}
	if diff := cmp.Diff(want, store); diff != "" {
		m.Errorf("%s: store against the model: %s", s.sub.Source(), diff)
	}
}

// TestTenant_ModelOfSelectors: whatever happens to objects, watches, connections, versions and rights, each subscriber of a tenant sees what its
// selectors select, of which the tenant has and pays one copy. Without a right, it sees no change.
func TestTenant_ModelOfSelectors(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newCacheModel(t, seed)
				for range 4 {
					for range 100 {
						m.step()
					}
					m.settle()
				}
				for _, s := range m.users {
					s.end()
				}
				if n := m.tenant.Bytes(); n != 0 || m.server.Open() != 0 {
					t.Errorf("%d bytes and %d watches are left", n, m.server.Open())
				}
				if n := m.memory.taken.Load(); n != 0 {
					t.Errorf("%d bytes of memory are not given back", n)
				}
			})
		})
	}
}
