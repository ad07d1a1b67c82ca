// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// attack is one malicious guest, with the required result.
type attack struct {
	// guest is the name of a file of guests/; where bytes is set it is a name only.
	guest string
	bytes func() []byte
	// on is the place of the attack: load, or the called export. If empty, it is reconcile.
	on string
	// limits are what differs from those of every attack.
	limits share.Limits
	// kind and says describe the required error; says is a part of its text. If both are empty,
	// there must be no error. kind is empty if the module is refused, or the error is the guest's
	// own.
	kind    abi.FailureKind
	message string
	// runs is the number of calls; 0 means 1. The last one must end like this.
	runs int
	// api serves its operations; nil answers all with an empty map.
	api func(tb testing.TB) operation.API
	// after checks the remaining state before the module is closed.
	after func(t *testing.T, w *world)
}

const onLoad = "load"

// spinning bounds what would go on forever, and no attack that would not: how
// long the others take is the machine's affair.
const spinning = 150 * time.Millisecond

// world is the environment of an attack.
type world struct {
	cfg    host.Config
	log    *logbook
	budget *share.Budget
	module *host.Module // nil where it was refused
	sent   int          // metrics
}

func (a *attack) name() string {
	if a.on == "" {
		return a.guest
	}
	return a.guest + "/" + a.on
}

// module is the bytes of an attack.
func (a *attack) module(tb testing.TB) []byte {
	tb.Helper()
	if a.bytes != nil {
		return a.bytes()
	}
	b, err := os.ReadFile(filepath.Join("guests", a.guest+".wasm"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// newWorld creates the host of an attack: it is small, and shared with the neighbor if possible.
func newWorld(tb testing.TB, a *attack, cpuScheduler *share.CPUScheduler) *world {
	tb.Helper()
	w := &world{log: &logbook{}, budget: share.NewBudget(256<<20, 0)}
	w.cfg = host.Config{
		Name: "hostile", Limits: a.limits, Process: host.Process{Budget: w.budget, CPUs: cpuScheduler}, Logger: slog.New(w.log), Concurrency: 2,
		Observer: operation.Observer{Metric: func(int32, string, float64) abi.Status { w.sent++; return abi.StatusOK }},
	}
	if w.cfg.Limits.Memory == 0 {
		w.cfg.Limits.Memory = 16 << 20
	}
	if w.cfg.Limits.Timeout == 0 {
		w.cfg.Limits.Timeout = 2 * time.Minute
	}
	var api operation.API = always(abi.Response{Body: []byte{0x80}})
	if a.api != nil {
		api = a.api(tb)
	}
	w.cfg.API = func(*abi.Manifest) (operation.API, error) { return api, nil }
	return w
}

// always answers every operation with the same.
type always abi.Response

// Call implements operation.API.
func (a always) Call(context.Context, abi.Op, []byte) abi.Response { return abi.Response(a) }

// strike loads the module and calls it, and returns how that ended.
func (w *world) strike(ctx context.Context, a *attack, wasm []byte) error {
	if err := w.load(ctx, wasm); err != nil || a.on == onLoad {
		if err == nil {
			err, w.module = w.module.Close(ctx), nil
		}
		return err
	}
	var err error
	for range max(1, a.runs) {
		err = w.call(ctx, a.on)
	}
	return err
}

func (w *world) load(ctx context.Context, wasm []byte) (err error) {
	w.module, err = host.Load(ctx, wasm, w.cfg)
	return err
}

// call calls one export as the applier does.
func (w *world) call(ctx context.Context, export string) error {
	object := []byte("\x81\xa1x\x00")
	ev := &abi.Event{Controller: "hostile", Type: abi.EventUpdated, Key: abi.Key{Namespace: "default", Name: "web"}, Old: object, New: object}
	switch export {
	case abi.ExportMap:
		_, err := w.module.Map(ctx, ev)
		return err
	case abi.ExportFilter:
		_, err := w.module.Filter(ctx, ev)
		return err
	}
	guest, release, err := w.module.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	req := &abi.Request{ID: "r1", Controller: "hostile", Attempt: 1, Key: abi.Key{Namespace: "default", Name: "web"}, Object: object}
	res, err := guest.Reconcile(ctx, req)
	if export == abi.ExportErrorPolicy {
		res, err = guest.ErrorPolicy(ctx, &abi.Failure{ID: req.ID, Key: req.Key, Object: object, Kind: abi.FailureTrap, Attempt: 1})
	}
	if err == nil && res.Error != nil {
		err = res.Error
	}
	return err
}

// TestHostile_EachAttackIsNamedAndContained: whatever a guest does, the host stays up, the error
// describes the attack, another module is served meanwhile and afterwards, and all memory is
// returned. Rule 17: a failure in a guest is an error of that one call. Rule 16: a slow guest slows
// only itself.
func TestHostile_EachAttackIsNamedAndContained(t *testing.T) {
	cpuScheduler := share.NewCPUScheduler(runtime.GOMAXPROCS(0))
	list := attacks()
	if len(list) < 60 {
		t.Errorf("%d attacks", len(list))
	}
	before := settled()
	t.Run("attacks", func(t *testing.T) {
		for _, a := range list {
			t.Run(a.name(), func(t *testing.T) {
				t.Parallel()
				contain(t, &a, cpuScheduler)
			})
		}
	})
	if after := settled(); after > before+(16<<20) {
		t.Errorf("the heap has %d KiB more than before", (after-before)>>10)
	}
}

// settled is how many bytes of the heap are in use once all garbage is gone.
func settled() uint64 {
	var m runtime.MemStats
	for range 3 { // finalizers free more
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// contain carries out an attack next to a neighbor.
func contain(t *testing.T, a *attack, cpuScheduler *share.CPUScheduler) {
	w := newWorld(t, a, cpuScheduler)
	wasm := a.module(t)
	n := newNeighbour(t, cpuScheduler)
	stop := n.serve(t)
	check(t, a, w.strike(t.Context(), a, wasm))
	if a.after != nil {
		a.after(t, w)
	}
	// Again, until there is no doubt that the neighbour is served meanwhile.
	for w.module != nil && n.served.Load() < 10 && t.Context().Err() == nil && !t.Failed() {
		_ = w.call(t.Context(), a.on)
	}
	stop(t)
	if w.module != nil {
		w.stillServes(t, a)
		if err := w.module.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if used := w.budget.Stats().Used; used != 0 {
		t.Errorf("%d bytes of linear memory did not come back", used)
	}
}

// check compares how an attack ended with how it should.
func check(t *testing.T, a *attack, err error) {
	t.Helper()
	if a.kind == "" && a.message == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), a.message) {
		t.Errorf("got error %.600v\nwant one that says %q", err, a.message)
		return
	}
	if n := len(err.Error()); n > 17<<10 {
		t.Errorf("the error is %d bytes long: %.300v", n, err)
	}
	ce, _ := errors.AsType[*abi.CallError](err)
	switch {
	case a.on == onLoad && !errors.Is(err, load.ErrInvalidModule):
		t.Errorf("the module is not blamed: %v", err)
	case a.on != onLoad && a.kind != "" && (ce == nil || ce.Kind != a.kind):
		t.Errorf("got %v, want kind %s", err, a.kind)
	}
}

// stillServes checks that the attack did not use up the module's slots: a guest can be acquired as
// before.
func (w *world) stillServes(t *testing.T, a *attack) {
	t.Helper()
	for range 3 {
		_, release, err := w.module.Acquire(t.Context())
		for end := time.Now().Add(time.Minute); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); {
			_, release, err = w.module.Acquire(t.Context()) // on a busy machine start code takes longer than it may, too
		}
		if err != nil {
			t.Errorf("%s: no guest after the attack: %v", a.guest, err)
			return
		}
		release()
	}
}

// neighbour is a module that does no harm, in the same process.
type neighbour struct {
	module *host.Module
	served atomic.Int64
}

func newNeighbour(tb testing.TB, cpuScheduler *share.CPUScheduler) *neighbour {
	tb.Helper()
	m, err := host.Load(tb.Context(), wasm.Empty, host.Config{Name: "neighbour", Process: host.Process{CPUs: cpuScheduler}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return &neighbour{module: m}
}

// reconcile is one run of the neighbour.
func (n *neighbour) reconcile(ctx context.Context) error {
	guest, release, err := n.module.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err = guest.Reconcile(ctx, &abi.Request{ID: "n", Controller: "neighbour", Attempt: 1, Key: abi.Key{Name: "n"}, Object: []byte{0x80}}); err == nil {
		n.served.Add(1)
	}
	return err
}

// serve reconciles, once in a millisecond at most, until the returned function is
// called. A run that fails fails the test.
func (n *neighbour) serve(t *testing.T) (stop func(*testing.T)) {
	ctx := t.Context()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if err := n.reconcile(ctx); err != nil {
				t.Errorf("neighbour: %v", err)
				return
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func(t *testing.T) {
		t.Helper()
		close(done)
		wg.Wait()
		for range 10 {
			if err := n.reconcile(ctx); err != nil {
				t.Errorf("neighbour, afterwards: %v", err)
			}
		}
	}
}

// logbook counts log lines, and stores the first ones.
type logbook struct {
	mu    sync.Mutex
	lines int    // guarded by mu
	bytes int    // guarded by mu
	text  []byte // guarded by mu
}

// Enabled implements slog.Handler.
func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *logbook) Handle(ctx context.Context, r slog.Record) error {
	var line strings.Builder
	err := slog.NewTextHandler(&line, nil).Handle(ctx, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines++
	l.bytes += line.Len()
	if len(l.text) < 16<<10 {
		l.text = append(l.text, line.String()...)
	}
	return err
}

// WithAttrs implements slog.Handler; those of the host say nothing here.
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *logbook) WithGroup(string) slog.Handler { return l }
