// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// observer is a module that passes everything on and records each run: whether a key runs
// twice at once, which state of each object was reconciled, and how long that took.
type observer struct {
	applier.Module

	mu      sync.Mutex
	busy    map[abi.Key]uint64           // revision; guarded by mu
	faults  []string                     // guarded by mu
	updates map[abi.Key]int              // runs that a change of the object led to; guarded by mu
	done    map[abi.Key]int              // the newest revision that was reconciled; guarded by mu
	sentAt  map[abi.Key]map[int]sentTime // guarded by mu
	related map[string][]string          // the objects that ran for a related resource; guarded by mu
	latency []sample                     // guarded by mu
	by      map[abi.Key]uint64           // the revision of the last run that succeeded; guarded by mu
	runsBy  map[abi.Key]map[uint64]int   // runs by revision; guarded by mu
	runs    int                          // guarded by mu
}

type sentTime struct {
	at   time.Time
	seen bool
}

// sample is the time between the request for a revision of an object and its reconcile.
type sample struct {
	sent time.Time
	took time.Duration
}

func newObserver(m applier.Module) *observer {
	return &observer{Module: m, by: map[abi.Key]uint64{}, runsBy: map[abi.Key]map[uint64]int{}, busy: map[abi.Key]uint64{}, updates: map[abi.Key]int{}, related: map[string][]string{}, done: map[abi.Key]int{}, sentAt: map[abi.Key]map[int]sentTime{}}
}

func (o *observer) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := o.Module.Acquire(ctx)
	return &observed{g, o}, release, err
}

type observed struct {
	abi.Guest
	o *observer
}

func (g *observed) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	edit := editOf(req.Object)
	g.o.begin(req, g.Revision(), edit)
	res, err := g.Guest.Reconcile(ctx, req)
	g.o.end(req.Key, g.Revision(), edit, err == nil && res.Error == nil)
	return res, err
}

func editOf(object []byte) int {
	m, err := abi.DecodeObject(object)
	if err != nil {
		return -1
	}
	text, _, _ := unstructured.NestedString(m, "spec", "text")
	edit := -1
	_, _ = fmt.Sscanf(text, "%d-", &edit) // or -1
	return edit
}

func (o *observer) sent(key abi.Key, edit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sentAt[key] == nil {
		o.sentAt[key] = map[int]sentTime{}
	}
	o.sentAt[key][edit] = sentTime{at: time.Now()}
}

func (o *observer) begin(req *abi.Request, revision uint64, edit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := req.Key
	if other, ok := o.busy[key]; ok {
		o.faults = append(o.faults, fmt.Sprintf("%s runs in revision %d and in %d at once", key, other, revision))
	}
	reasons := append([]abi.Reason{req.Reason}, req.More...)
	if slices.ContainsFunc(reasons, func(r abi.Reason) bool { return r.Type == abi.ReasonObjectUpdated }) {
		o.updates[key]++
		if n := o.changes(key, edit); o.updates[key] > n {
			o.faults = append(o.faults, fmt.Sprintf("%s: %d changes up to revision %d led to %d runs", key, n, edit, o.updates[key]))
		}
	}
	for _, r := range reasons {
		if r.Type == abi.ReasonRelated {
			resource, _, _ := strings.Cut(r.Resource, ".")
			o.related[resource] = append(o.related[resource], key.Name)
		}
	}
	o.busy[key] = revision
	o.runs++
	if s, ok := o.sentAt[key][edit]; ok && !s.seen {
		o.latency = append(o.latency, sample{s.at, time.Since(s.at)})
		o.sentAt[key][edit] = sentTime{s.at, true}
	}
}

// changes counts the events of an object that may have caused a run that sees a revision:
// one for each revision, and one for an object that existed before. Each causes at most one
// run. Which event caused a run is unknown: a run sees the newest state of the cache, which
// may be there before its own event is scheduled, so that the run for that event sees the
// same revision again. The caller holds mu.
func (o *observer) changes(key abi.Key, edit int) (n int) {
	for r := range o.sentAt[key] {
		if r <= edit {
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return n
}

// ranFor returns the objects that ran because of a related resource.
func (o *observer) ranFor(resource string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.related[resource])
}

// noted returns how often an object ran in a revision.
func (o *observer) noted(key abi.Key, revision uint64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runsBy[key][revision]
}

func (o *observer) end(key abi.Key, revision uint64, edit int, good bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, key)
	if o.runsBy[key] == nil {
		o.runsBy[key] = map[uint64]int{}
	}
	o.runsBy[key][revision]++
	if !good {
		return
	}
	o.by[key] = revision
	if edit < o.done[key] {
		o.faults = append(o.faults, fmt.Sprintf("%s went back from revision %d to %d", key, o.done[key], edit))
	}
	o.done[key] = max(o.done[key], edit)
}

// behind counts the objects whose last revision was not reconciled.
func (o *observer) behind() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, edits := range o.sentAt {
		last := 0
		for r := range edits {
			last = max(last, r)
		}
		if o.done[key] != last {
			n++
		}
	}
	return n
}
