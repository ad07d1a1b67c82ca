// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"slices"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Host simulates a host and a cluster in memory. Create one for each test, and
// use it from one goroutine at a time.
type Host struct {
	// DryRun makes every run a dry run, in which the host carries out no
	// writes.
	DryRun bool
	// Cancelled is the result of Context.Cancelled.
	Cancelled bool
	// LogLevel is the lowest level that the Host records; LevelInfo by default.
	LogLevel wasmctl.Level

	t       testing.TB
	store   store
	now     time.Time
	config  map[string]string
	calls   []Call
	lines   []Line
	events  []wasmctl.Event
	metrics map[string]float64
	faults  map[string][]wasmctl.Error
	failed  map[wasmctl.ObjectRef]*series

	configGen int64
	notSynced map[string]bool // by kind
	indexes   indexes
	listed    bool                            // Run has queued the initial objects
	due       map[wasmctl.ObjectRef]time.Time // requeues that Run waits for

	manifest wasmctl.Manifest     // of the current run
	running  *wasmctl.EventObject // its object
	entered  string               // name of the current entry function
	held     []byte               // answer for Take
}

// Call is a call of an operation.
type Call struct {
	// Op is the operation, for example "api_apply".
	Op string
	// Ref and Subresource name the object of the call.
	Ref         wasmctl.ObjectRef
	Subresource string
	// Status is 0, an HTTP code or a negative status of the host.
	Status int
	// Changed reports whether the call changed the cluster.
	Changed bool
}

// Line is a line of the log.
type Line struct {
	Level   wasmctl.Level
	Message string
	Attrs   map[string]any
}

// New returns a host whose cluster has the objects; see Add. Its clock starts
// at the beginning of the year 2026; see SetTime.
func New(t testing.TB, objects ...any) *Host {
	t.Helper()
	h := &Host{
		t: t, store: newStore(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), config: map[string]string{},
		faults: map[string][]wasmctl.Error{}, failed: map[wasmctl.ObjectRef]*series{},
		configGen: 1, notSynced: map[string]bool{}, indexes: indexes{}, due: map[wasmctl.ObjectRef]time.Time{},
	}
	h.Add(objects...)
	return h
}

// Add adds objects to the cluster unchanged: each is a wasmctl.Map, an Object
// or a struct. It fills in missing fields that the API server would set. It
// replaces an object of the same name.
func (h *Host) Add(objects ...any) {
	h.t.Helper()
	for _, o := range objects {
		obj, err := toMap(o)
		if err != nil {
			h.t.Fatalf("guesttest: object %v: %v", o, err)
		}
		if str(obj, "apiVersion") == "" || str(obj, "kind") == "" || str(obj, "metadata", "name") == "" {
			h.t.Fatalf("guesttest: object %v: needs apiVersion, kind and metadata.name", o)
		}
		h.store.put(idOf(obj), obj, h.now)
	}
}

// Remove removes an object from the cluster at once, even if it has finalizers.
func (h *Host) Remove(ref wasmctl.ObjectRef) { h.store.remove(idOfRef(ref)) }

// Delete deletes an object as a user does: an object with finalizers stays
// until they are removed.
func (h *Host) Delete(ref wasmctl.ObjectRef) {
	h.t.Helper()
	defer func(dry bool) { h.DryRun = dry }(h.DryRun)
	h.DryRun = false
	r := &request{id: idOfRef(ref), ref: ref, old: h.store.objects[idOfRef(ref)]}
	if r.old == nil {
		h.t.Fatalf("guesttest: delete %v: %v", ref, h.notFound(r))
	}
	if _, fail := h.delete(r); fail != nil {
		h.t.Fatalf("guesttest: delete %v: %v", ref, fail)
	}
}

// Edit changes an object as a user does with an editor: it stores the object
// after f has changed it. A change outside of metadata and status increments
// metadata.generation.
func (h *Host) Edit(ref wasmctl.ObjectRef, f func(obj *wasmctl.Object)) {
	h.t.Helper()
	old, ok := h.store.objects[idOfRef(ref)]
	if !ok {
		h.t.Fatalf("guesttest: edit %v: not in the cluster", ref)
	}
	obj := h.object(old)
	f(&obj)
	edited, err := toMap(obj)
	if err != nil {
		h.t.Fatalf("guesttest: edit %v: %v", ref, err)
	}
	h.store.replace(idOfRef(ref), old, edited, h.now)
}

// Get returns an object of the cluster. If it does not exist, Value.Exists
// returns false for the result.
func (h *Host) Get(ref wasmctl.ObjectRef) wasmctl.Object {
	h.t.Helper()
	return h.object(h.store.objects[idOfRef(ref)])
}

// object converts obj to the form that the reconciler receives. A nil obj gives
// an Object that does not exist.
func (h *Host) object(obj map[string]any) wasmctl.Object {
	h.t.Helper()
	if obj == nil {
		return wasmctl.Object{}
	}
	o, err := wasmctl.NewObject(obj)
	if err != nil {
		h.t.Fatalf("guesttest: object %v: %v", obj, err)
	}
	return o
}

// NotSynced makes the cache answer that the watch of a kind has not listed its
// objects yet, until the test calls Synced.
func (h *Host) NotSynced(kind string) { h.notSynced[kind] = true }

// Synced ends the effect of NotSynced for a kind.
func (h *Host) Synced(kind string) { delete(h.notSynced, kind) }

// Events returns the events recorded so far, with Regarding filled in.
func (h *Host) Events() []wasmctl.Event { return h.events }

// SetConfig sets a setting, which overrides the default of the manifest,
// without a call of Reconciler.Configure; see Configure.
func (h *Host) SetConfig(key, value string) { h.config[key] = value }

// SetTime sets the clock.
func (h *Host) SetTime(now time.Time) { h.now = now }

// Advance moves the clock forward.
func (h *Host) Advance(d time.Duration) { h.now = h.now.Add(d) }

// ClusterScoped declares that a kind is cluster-scoped. The built-in kinds of
// Kubernetes are known.
func (h *Host) ClusterScoped(kind string) { h.store.clusterScoped[kind] = true }

// Plural sets the resource name of a kind, if the guess is wrong.
func (h *Host) Plural(kind, resource string) { h.store.plurals[kind] = resource }

// FailNext makes the next call of an operation, for example "api_apply", return
// err without any effect. Several calls of FailNext queue up.
func (h *Host) FailNext(op string, err wasmctl.Error) { h.faults[op] = append(h.faults[op], err) }

// Calls returns the calls of operations so far.
func (h *Host) Calls() []Call { return h.calls }

// Changes returns the calls so far that changed the cluster.
func (h *Host) Changes() []Call {
	return slices.DeleteFunc(slices.Clone(h.calls), func(c Call) bool { return !c.Changed })
}

// Log returns the lines logged so far.
func (h *Host) Log() []Line { return h.lines }

// functions implements the host functions for the reconciler.
type functions struct{ h *Host }

var _ imports.Host = functions{}

// Call implements imports.Host.
func (f functions) Call(op *imports.Op, req, dst []byte) (status int32, length int) {
	status, f.h.held = f.h.call(op.Name, req)
	if len(f.h.held) <= len(dst) {
		copy(dst, f.h.held)
	}
	return status, len(f.h.held)
}

// Take implements imports.Host.
func (f functions) Take(dst []byte) int32 { return int32(copy(dst, f.h.held)) }

// Log implements imports.Host.
func (f functions) Log(level int32, msg []byte) {
	f.h.t.Helper()
	line := Line{Level: wasmctl.Level(level)}
	v, err := wire.Decode(msg)
	attrs, ok := v.(map[string]any)
	if err != nil || !ok {
		f.h.t.Errorf("guesttest: log: line %x cannot be read: %v", msg, err)
		return
	}
	line.Message = str(attrs, "msg")
	delete(attrs, "msg")
	line.Attrs = attrs
	f.h.lines = append(f.h.lines, line)
}

// LogLevel implements imports.Host.
func (f functions) LogLevel() int32 { return int32(f.h.LogLevel) }

// NowMS implements imports.Host.
func (f functions) NowMS() int64 { return f.h.now.UnixMilli() }

// MonoNS implements imports.Host.
func (f functions) MonoNS() int64 { return f.h.now.UnixNano() }

// Cancelled implements imports.Host.
func (f functions) Cancelled() bool { return f.h.Cancelled }

// Budget implements imports.Host.
func (f functions) Budget(int32) int64 { return -1 }

// Random implements imports.Host.
func (f functions) Random(dst []byte) bool {
	for i := range dst {
		dst[i] = byte(i) // deterministic
	}
	return true
}
