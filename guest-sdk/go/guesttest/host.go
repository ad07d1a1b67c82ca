package guesttest

import (
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Host is a host and a cluster in memory. Each test makes its own; one
// goroutine uses it at a time.
type Host struct {
	// DryRun makes runs dry: no write is carried out.
	DryRun bool
	// Cancelled is what Context.Cancelled says.
	Cancelled bool
	// LogLevel is the lowest level that is kept; LevelInfo as it is made.
	LogLevel wasmctl.Level

	t      testing.TB
	store  store
	now    time.Time
	config map[string]string
	calls  []Call
	lines  []Line
	events []wasmctl.Event
	faults map[string][]wasmctl.Error
	failed map[wasmctl.ObjectRef]*series

	configGen int64
	notSynced map[string]bool                 // kinds
	listed    bool                            // Run has seen the objects that were there
	due       map[wasmctl.ObjectRef]time.Time // requeues that Run waits for

	manifest wasmctl.Manifest     // of the current run
	running  *wasmctl.EventObject // its object
	entered  string               // the entry function that was called
	held     []byte               // for Take
}

// Call is a call of an operation.
type Call struct {
	// Op is "api_apply", for example.
	Op string
	// Ref and Subresource name what it was about.
	Ref         wasmctl.ObjectRef
	Subresource string
	// Status is 0, an HTTP code or a negative status of the host.
	Status int
	// Changed reports whether the cluster is another one since.
	Changed bool
}

// Line is a line of the log.
type Line struct {
	Level   wasmctl.Level
	Message string
	Attrs   map[string]any
}

// New returns a host whose cluster has the objects; see Add. Its clock stands at
// the start of the year 2026 until SetTime.
func New(t testing.TB, objects ...any) *Host {
	t.Helper()
	h := &Host{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), config: map[string]string{},
		faults: map[string][]wasmctl.Error{}, failed: map[wasmctl.ObjectRef]*series{},
		configGen: 1, notSynced: map[string]bool{}, due: map[wasmctl.ObjectRef]time.Time{},
	}
	h.store.init()
	h.Add(objects...)
	return h
}

// Add puts objects into the cluster as they are: a wasmctl.Map, an Object or a
// struct each. What the API server would have set and they do not have is
// filled in. An object of the same name is replaced.
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

// Remove takes an object out of the cluster at once, whatever its finalizers.
func (h *Host) Remove(ref wasmctl.ObjectRef) { h.store.remove(idOfRef(ref)) }

// Delete deletes an object as a user does: if it has finalizers it waits for
// them.
func (h *Host) Delete(ref wasmctl.ObjectRef) {
	h.t.Helper()
	defer func(dry bool) { h.DryRun = dry }(h.DryRun)
	h.DryRun = false
	if _, fail := h.delete(&request{id: idOfRef(ref), ref: ref}); fail != nil {
		h.t.Fatalf("guesttest: delete %v: %v", ref, fail)
	}
}

// Edit changes an object as a user does with an editor: what f makes of it is
// written, and a change outside of metadata and status is a new generation.
func (h *Host) Edit(ref wasmctl.ObjectRef, f func(obj *wasmctl.Object)) {
	h.t.Helper()
	old, ok := h.store.objects[idOfRef(ref)]
	if !ok {
		h.t.Fatalf("guesttest: edit %v: is not in the cluster", ref)
	}
	obj := h.object(old)
	f(&obj)
	edited, err := toMap(obj)
	if err != nil {
		h.t.Fatalf("guesttest: edit %v: %v", ref, err)
	}
	h.store.replace(idOfRef(ref), old, edited, h.now)
}

// Get returns an object of the cluster; it does not exist (see Value.Exists) if
// there is none.
func (h *Host) Get(ref wasmctl.ObjectRef) wasmctl.Object {
	h.t.Helper()
	obj, ok := h.store.objects[idOfRef(ref)]
	if !ok {
		return wasmctl.Object{}
	}
	return h.object(obj)
}

func (h *Host) object(obj map[string]any) wasmctl.Object {
	h.t.Helper()
	o, err := wasmctl.NewObject(obj)
	if err != nil {
		h.t.Fatalf("guesttest: object %v: %v", obj, err)
	}
	return o
}

// NotSynced makes the cache answer that it has not listed the objects of a kind
// yet, until Synced.
func (h *Host) NotSynced(kind string) { h.notSynced[kind] = true }

// Synced makes the cache answer again for a kind.
func (h *Host) Synced(kind string) { delete(h.notSynced, kind) }

// Events returns the events recorded so far. Regarding is filled in.
func (h *Host) Events() []wasmctl.Event { return h.events }

// SetConfig sets a setting, over the default of the manifest, without asking
// Reconciler.Configure; see Configure.
func (h *Host) SetConfig(key, value string) { h.config[key] = value }

// SetTime sets the clock.
func (h *Host) SetTime(now time.Time) { h.now = now }

// Advance moves the clock on.
func (h *Host) Advance(d time.Duration) { h.now = h.now.Add(d) }

// ClusterScoped says that a kind has no namespaces, where guesttest does not
// know: it knows those of Kubernetes.
func (h *Host) ClusterScoped(kind string) { h.store.clusterScoped[kind] = true }

// Plural says what the resource of a kind is called, where the guess is wrong.
func (h *Host) Plural(kind, resource string) { h.store.plurals[kind] = resource }

// FailNext makes the next call of an operation, "api_apply" for example, answer
// err and do nothing else. Several wait in line.
func (h *Host) FailNext(op string, err wasmctl.Error) { h.faults[op] = append(h.faults[op], err) }

// Calls returns the calls of operations so far.
func (h *Host) Calls() []Call { return h.calls }

// Changes returns the calls so far that changed the cluster.
func (h *Host) Changes() []Call {
	var list []Call
	for _, c := range h.calls {
		if c.Changed {
			list = append(list, c)
		}
	}
	return list
}

// Log returns the lines logged so far.
func (h *Host) Log() []Line { return h.lines }

// functions is the Host as the reconciler sees it.
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
func (f functions) Take(dst []byte, off int) int32 {
	if off < 0 || off > len(f.h.held) {
		return wasmctl.StatusBadRequest
	}
	return int32(copy(dst, f.h.held[off:]))
}

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

// Metric implements imports.Host.
func (f functions) Metric(int32, string, float64) int32 { return wasmctl.StatusUnsupported }

// NowMS implements imports.Host.
func (f functions) NowMS() int64 { return f.h.now.UnixMilli() }

// MonoNS implements imports.Host.
func (f functions) MonoNS() int64 { return f.h.now.UnixNano() }

// Cancelled implements imports.Host.
func (f functions) Cancelled() bool { return f.h.Cancelled }

// Budget implements imports.Host.
func (f functions) Budget(int32) int64 { return -1 }

// Random implements imports.Host.
func (f functions) Random(dst []byte) int32 {
	for i := range dst {
		dst[i] = byte(i) // the same in each run of a test
	}
	return 0
}
