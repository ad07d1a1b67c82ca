// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// envRightsCases is how many cases the model test runs; `make rights` runs 50,000.
const (
	envRightsCases = "WASMCTL_RIGHTS_CASES"
	envRightsSeed  = "WASMCTL_RIGHTS_SEED"
)

func envInt(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(name, err)
	}
	return n
}

// done is what one case did to an object.
type done struct {
	rights   rightsOf
	kind     *modelKind
	op       abi.Op
	sub      string
	ns, name string
	request  string
}

// logbook records the author of each change, by UID and resourceVersion. Writes of others always
// change something, so a version that both received is theirs.
type logbook struct {
	mu      sync.Mutex
	module  map[version]*done  // guarded by mu
	others  map[version]bool   // guarded by mu
	deletes map[string][]*done // by uid, of the module; guarded by mu
	gone    map[string]bool    // uids that others deleted, or that have owners; guarded by mu
}

// spy records the answers to writes.
type spy struct {
	next   http.RoundTripper
	book   *logbook
	now    *done  // nil for others; one case at a time
	before func() // called once before a write is sent
}

func (s *spy) RoundTrip(req *http.Request) (*http.Response, error) {
	writes := req.Method != http.MethodGet && req.URL.Query().Get("dryRun") == ""
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
		writes = writes && (req.Method != http.MethodDelete || !bytes.Contains(sent, []byte(`"dryRun":["All"]`)))
	}
	if f := s.before; f != nil && writes {
		s.before = nil
		f()
	}
	res, err := s.next.RoundTrip(req)
	if err != nil || !writes || res.StatusCode >= 300 {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	var o map[string]any
	if err == nil && json.Unmarshal(body, &o) == nil {
		s.record(req.Method == http.MethodDelete, o)
	}
	return res, err
}

func (s *spy) record(deleted bool, o map[string]any) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	v := versionOf(o)
	if v.UID == "" {
		v.UID, _ = at(o, "details", "uid").(string)
	}
	switch {
	case s.now == nil && deleted:
		s.book.gone[v.UID] = true
	case deleted:
		s.book.deletes[v.UID] = append(s.book.deletes[v.UID], s.now)
	}
	switch {
	case s.now == nil:
		s.book.others[v] = true
	case s.book.module[v] == nil:
		s.book.module[v] = s.now
	}
}

// watched is a change that the API server reports.
type watched struct {
	deleted       bool
	kind          *modelKind
	before, after map[string]any
}

// history collects the changes of all objects of the test.
type history struct {
	mu     sync.Mutex
	state  map[string]map[string]any // by uid; guarded by mu
	events []watched                 // guarded by mu
	more   chan struct{}             // of one: there are more events

	kinds   []*modelKind
	players int
}

func (h *history) follow(t *testing.T, client dynamic.Interface, k *modelKind, mine func(ns, name string) bool) {
	list, err := client.Resource(k.gvr()).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.Resource(k.gvr()).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok || !mine(o.GetNamespace(), o.GetName()) {
				continue
			}
			h.mu.Lock()
			uid := string(o.GetUID())
			h.events = append(h.events, watched{e.Type == watch.Deleted, k, h.state[uid], o.Object})
			h.state[uid] = o.Object
			h.mu.Unlock()
			select {
			case h.more <- struct{}{}:
			default:
			}
		}
	}()
}

// TestRights_WhatChangesLiesWithinThem: random writes under random rights, of all verbs,
// subresources, patch types and versions, while another client writes to the same objects and the
// garbage collector runs. Each change must be made by others or lie within the rights, and each
// shown value must lie within get.
func TestRights_WhatChangesLiesWithinThem(t *testing.T) {
	cases, seed, workers := envInt(t, envRightsCases, 2000), envInt(t, envRightsSeed, 1), 4
	c := devclustertest.Shared(t)
	devclustertest.Apply(t, c, []byte(sprocketCRD))
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{}
	var list []string
	for range workers {
		ns := devclustertest.Namespace(t, c)
		namespaces[ns], list = true, append(list, ns)
	}
	book := &logbook{module: map[version]*done{}, others: map[version]bool{}, deletes: map[string][]*done{}, gone: map[string]bool{}}
	kinds := modelKinds()
	h := &history{state: map[string]map[string]any{}, more: make(chan struct{}, 1), kinds: kinds, players: workers}
	for _, k := range kinds {
		h.follow(t, client, k, func(ns, name string) bool {
			own, made := name, false
			for _, suffix := range []string{"-xa", "-xb", "-xlast"} {
				if rest, ok := strings.CutSuffix(name, suffix); ok {
					own, made = rest, true
				}
			}
			return ns == "" && made && namespaces[own] || namespaces[ns] && name != "kube-root-ca.crt"
		})
	}
	var wg sync.WaitGroup
	started := time.Now()
	totals := make([]map[string]int, workers)
	for i, ns := range list {
		p := newPlayer(t, c.RESTConfig(), book, kinds, ns, rand.New(rand.NewPCG(uint64(seed), uint64(i)))) //nolint:gosec // a seed
		wg.Go(func() {
			for n := 0; n < cases/workers && !t.Failed(); n++ {
				p.play()
			}
			p.last()
		})
		totals[i] = p.totals
	}
	wg.Wait()
	t.Logf("%d cases in %v: %v", cases, time.Since(started).Round(time.Millisecond), totals)
	h.settle(t)
	h.judge(t, book)
}

// player runs cases in a namespace.
type player struct {
	t      *testing.T
	r      *rand.Rand
	kinds  []*modelKind
	ns     string
	module *session
	spy    *spy
	others *session // with all rights, under another name
	n      int
	totals map[string]int
}

func newPlayer(t *testing.T, config *rest.Config, book *logbook, kinds []*modelKind, ns string, r *rand.Rand) *player {
	spied := func() (*session, *spy) {
		s := &spy{book: book}
		c := rest.CopyConfig(config)
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { s.next = next; return s })
		return newSession(t, c, ns), s
	}
	p := &player{t: t, r: r, kinds: kinds, ns: ns, totals: map[string]int{}}
	p.module, p.spy = spied()
	p.others, _ = spied()
	p.others = p.others.admin()
	p.others.manager = "they"
	return p
}

// play runs one case.
func (p *player) play() {
	k, name := pick(p.r, p.kinds), pick(p.r, []string{"a", "b"})
	ns := p.ns
	if k.cluster {
		ns, name = "", p.ns+"-x"+name
	}
	ref := map[string]any{"apiVersion": k.apiVersion(), "kind": k.gvk.Kind, "name": name}
	if ns != "" {
		ref["namespace"] = ns
	}
	status, current := p.others.do(abi.OpAPIGet, ref)
	if status != abi.StatusOK {
		current = nil
		if p.r.IntN(3) > 0 || k.cluster {
			current = p.others.create(k.base(ns, name, p.word()))
		}
	}
	op, req := randomWrite(p.r, k, ns, name, current)
	sub, _ := req["subresource"].(string)
	rules := rightsOf{rulesAbout(p.r, k, op, req)}
	policy := NewPolicy(rules[0])
	if p.r.IntN(4) == 0 {
		rules = append(rules, rulesAbout(p.r, k, op, req))
		policy = policy.Within(rules[1])
	}
	meddle, plan := p.meddle(k, ref, ns, name), p.r.IntN(4)
	p.spy.now = &done{rules, k, op, sub, ns, name, asText(req)}
	var wg sync.WaitGroup
	switch plan {
	case 0:
		wg.Go(meddle)
	case 1:
		p.spy.before = meddle
	}
	got := p.module.WithPolicy(policy).Call(p.t.Context(), op, msg(p.t, req))
	p.spy.before = nil
	wg.Wait()
	p.count(got.Status)
	p.seen(rules, k, op, sub, ns, name, req, got)
}

func asText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *player) count(s abi.Status) { p.totals[s.String()]++ }

func (p *player) word() string { p.n++; return fmt.Sprint(secretWord, p.ns, "-", p.n) }

// meddle returns what another client does to an object meanwhile. It changes
// something in any case, or nothing at all.
func (p *player) meddle(k *modelKind, ref map[string]any, ns, name string) func() {
	word, choice := p.word(), p.r.IntN(5)
	base := k.base(ns, name, word)
	if choice == 0 && k.cluster {
		choice = 1
	}
	return func() {
		switch choice {
		case 0:
			p.others.do(abi.OpAPIDelete, ref)
		case 1, 2:
			p.others.do(abi.OpAPICreate, map[string]any{"object": base})
		case 3:
			p.others.do(abi.OpAPIApply, map[string]any{"object": base, "force": true})
		default:
			p.others.do(abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"word": word}}}))
		}
	}
}

func (s *session) create(o map[string]any) map[string]any {
	if status, made := s.do(abi.OpAPICreate, map[string]any{"object": o}); status == abi.StatusOK {
		return made
	}
	return nil
}

// seen judges the content of an answer.
func (p *player) seen(rules rightsOf, k *modelKind, op abi.Op, sub, ns, name string, req map[string]any, got abi.Response) {
	if rules.allow(k, "get", sub, ns, name) || rules.allow(k, "get", "", ns, name) {
		return
	}
	body, err := abi.DecodeObject(got.Body)
	if err != nil {
		p.t.Errorf("%s: %v", op, err)
		return
	}
	if shown := asText(body); strings.Contains(shown, secretWord) && !strings.Contains(asText(req), secretWord) || strings.Contains(shown, `"fieldsV1"`) {
		p.t.Errorf("under %s, %s %s shows %s", asText(rules), op, asText(req), shown)
	}
	if got.Status == abi.StatusOK && (at(body, "spec") != nil || at(body, "data") != nil || at(body, "metadata", "annotations") != nil) {
		p.t.Errorf("under %s, %s %s shows %s", asText(rules), op, asText(req), asText(body))
	}
}

// last makes an object that the watch of each kind must report, so that all that
// came before is known.
func (p *player) last() {
	for _, k := range p.kinds {
		ns, name := p.ns, "last"
		if k.cluster {
			ns, name = "", p.ns+"-xlast"
		}
		if p.others.create(k.base(ns, name, p.word())) == nil {
			p.t.Errorf("cannot make the last %s", k.gvk.Kind)
		}
	}
}

// settle waits until the history has every version of the logbook.
func (h *history) settle(t *testing.T) {
	for !h.complete() {
		if t.Failed() {
			t.FailNow()
		}
		select {
		case <-h.more:
		case <-t.Context().Done():
			t.Fatal("the watches have not reported everything")
		}
	}
}

func (h *history) complete() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]int{}
	for _, e := range h.events {
		if name, _ := at(e.after, "metadata", "name").(string); strings.HasSuffix(name, "last") && e.before == nil {
			last[e.kind.gvk.Kind]++
		}
	}
	for _, k := range h.kinds {
		if last[k.gvk.Kind] < h.players {
			return false
		}
	}
	return true
}

func (h *history) judge(t *testing.T, book *logbook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	book.mu.Lock()
	defer book.mu.Unlock()
	byModule := 0
	for i := range h.events {
		e := &h.events[i]
		v := versionOf(e.after)
		if at(e.after, "metadata", "ownerReferences") != nil || at(e.before, "metadata", "ownerReferences") != nil {
			book.gone[v.UID] = true // the garbage collector's, once the change itself was within the rights
		}
		if book.others[v] || e.deleted && book.gone[v.UID] || e.isCollected() {
			continue
		}
		who := book.module[v]
		if e.deleted {
			h.judgeDeleted(t, book, e)
			continue
		}
		if who == nil {
			if len(book.deletes[v.UID]) > 0 || book.gone[v.UID] {
				continue // what becomes of a deletion
			}
			t.Errorf("nobody did this to a %s:\nbefore %s\nafter  %s", e.kind.gvk.Kind, asText(e.before), asText(e.after))
			continue
		}
		byModule++
		if wrong := who.judge(e); wrong != "" {
			t.Errorf("under %s\n%s %s\ndid %s", asText(who.rights), who.op, who.request, wrong)
		}
	}
	t.Logf("%d changes, %d of them by the module", len(h.events), byModule)
}

// isCollected reports whether a change is the garbage collector's, which ends a
// deletion in the foreground. The answer of a write that changes nothing has the
// version of the last change, which may be of another.
func (e *watched) isCollected() bool {
	without := func(o map[string]any) map[string]any {
		o = runtime.DeepCopyJSON(o)
		meta, _ := o["metadata"].(map[string]any)
		list, _ := meta["finalizers"].([]any)
		list = slices.DeleteFunc(list, func(f any) bool {
			return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
		})
		if delete(meta, "finalizers"); len(list) > 0 {
			meta["finalizers"] = list
		}
		for _, key := range []string{"resourceVersion", "managedFields", "generation"} {
			delete(meta, key)
		}
		return o
	}
	return !e.deleted && e.before != nil && at(e.before, "metadata", "deletionTimestamp") != nil &&
		reflect.DeepEqual(without(e.before), without(e.after))
}

func (h *history) judgeDeleted(t *testing.T, book *logbook, e *watched) {
	v := versionOf(e.after)
	for _, d := range book.deletes[v.UID] {
		if d.rights.allow(d.kind, "delete", "", d.ns, d.name) {
			return
		}
	}
	if d := book.module[v]; d != nil && len(book.deletes[v.UID]) > 0 {
		return
	}
	t.Errorf("nobody deleted this: %s", asText(e.after))
}

// judge returns the parts of a change that were not allowed.
func (d *done) judge(e *watched) string {
	if e.before == nil {
		if !d.rights.allow(d.kind, "create", "", d.ns, d.name) {
			return "create without the right: " + asText(e.after)
		}
		return ""
	}
	switch d.op { //nolint:exhaustive // others change nothing that is there
	case abi.OpAPIDelete:
		if !d.rights.allow(d.kind, "delete", "", d.ns, d.name) {
			return "delete without the right"
		}
		return ""
	case abi.OpAPIUpdate:
		return d.rights.beyond(d.kind, "update", d.sub, d.ns, d.name, e.before, e.after)
	case abi.OpAPIPatch, abi.OpAPIApply:
		return d.rights.beyond(d.kind, "patch", d.sub, d.ns, d.name, e.before, e.after)
	}
	return string(d.op) + " of what is there"
}
