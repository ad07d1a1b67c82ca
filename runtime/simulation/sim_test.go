// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// The kinds of the simulated cluster. Users own widgets, configs and zones; controllers of widgets create parts.
var (
	widgets = memapi.Kind{GroupVersionKind: gvk("Widget"), Resource: "widgets", Namespaced: true}
	zones   = memapi.Kind{GroupVersionKind: gvk("Zone"), Resource: "zones"}
	configs = memapi.Kind{GroupVersionKind: gvk("Config"), Resource: "configs", Namespaced: true}
	parts   = memapi.Kind{GroupVersionKind: gvk("Part"), Resource: "parts", Namespaced: true}

	kinds = []memapi.Kind{widgets, zones, configs, parts}
)

const group = "sim.dev"

// keyOf returns the key of an object.
func keyOf(o *unstructured.Unstructured) abi.Key {
	return abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Bounds of one simulation.
const (
	// quietWithin is the virtual time within which everything must have been reconciled after the last fault: a stalled
	// watch is noticed after 10.5 minutes at most, and back-offs go up to 5.
	quietWithin = 90 * time.Minute
	// maxRuns and maxRequests are far more than a simulation needs.
	maxJobs, maxRequests = 20_000, 20_000
	// maxLag is the maximum number of versions that a list can be outdated.
	maxLag = 10
	// maxReported is the number of trace lines that a failed simulation prints.
	maxReported = 1500
)

// sim is one simulation: everything is drawn from its seed, except the decisions of the Go scheduler and the jitter of
// back-offs.
type sim struct {
	t      *testing.T
	seed   uint64
	plot   plot
	api    *memapi.Server
	set    *watcher.Set
	pool   *runner.Pool
	ctrls  []*ctrl
	calm   atomic.Bool // the faults are over
	seq    atomic.Int64
	begin  time.Time
	asked  atomic.Int64 // requests to the API server
	jobs   atomic.Int64 // that were started
	inPool atomic.Int64 // running jobs of all controllers
	phases phases
	counts counter // of requests, by scope
	// crowded means that a controller has joined the pool when it may have had no slot to reserve; it belongs to the
	// simulation's own goroutine.
	crowded bool

	mu    sync.Mutex
	trace []entry // guarded by mu
	bad   int     // guarded by mu
}

// entry is a line of the trace, formatted only when it is needed.
type entry struct {
	at     time.Duration
	format string
	args   []any
}

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{t: t, seed: seed, begin: time.Now()}
	s.plot = newPlot(s.rng("plot"))
	s.api = memapi.New(memapi.Config{Kinds: kinds, Untracked: true, Intercept: s.fault})
	client, err := watcher.NewClient(&rest.Config{Host: "http://sim", Transport: s.api})
	if err != nil {
		t.Fatal(err)
	}
	s.set = watcher.NewSet(client, watcher.Config{OnChange: func(source watcher.Source, st watcher.State) {
		s.logf("watch %s: %s", source, st)
	}})
	if s.plot.pool > 0 {
		if s.pool, err = runner.NewPool(s.plot.pool); err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.plot.ctrls {
		s.ctrls = append(s.ctrls, newCtrl(s, &s.plot.ctrls[i]))
	}
	return s
}

// rng returns the random numbers for one purpose, which are independent of those for other purposes.
func (s *sim) rng(purpose ...any) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, p := range purpose {
		for _, c := range []byte(fmt.Sprint(p)) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return rand.New(rand.NewPCG(s.seed, h))
}

func (s *sim) logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, entry{time.Since(s.begin), format, args})
}

// violated reports that a rule was broken. The simulation continues.
func (s *sim) violated(format string, args ...any) {
	s.t.Helper()
	s.logf("VIOLATED: "+format, args...)
	s.mu.Lock()
	s.bad++
	few := s.bad <= 5
	s.mu.Unlock()
	if few {
		s.t.Errorf("seed %d, after %v: "+format, append([]any{s.seed, time.Since(s.begin)}, args...)...)
	}
}

// tooMany ends the test of a simulation in an endless loop, in which virtual time may never advance.
func (s *sim) tooMany(what string) {
	panic(fmt.Sprintf("too many %s\n%s", what, s.story()))
}

// report prints the trace at the end of a failed simulation.
func (s *sim) report() {
	if s.t.Failed() {
		s.t.Log(s.story())
	}
}

func (s *sim) story() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "again: go test ./runtime/simulation -run 'Seed/%d$' -seed %d\n%s\n", s.seed, s.seed, s.plot.String())
	for _, e := range s.trace[max(0, len(s.trace)-maxReported):] {
		fmt.Fprintf(&b, "%12v  %s\n", e.at, fmt.Sprintf(e.format, e.args...))
	}
	return b.String()
}

// simulate runs one seed. It must be called in a bubble.
func simulate(t *testing.T, seed uint64) {
	s := newSim(t, seed)
	defer s.report()
	for _, o := range s.plot.before {
		s.play(o)
	}
	for _, c := range s.ctrls {
		if c.spec.startAt == 0 {
			c.start()
		}
	}
	for _, o := range s.plot.ops {
		if o.wait > 0 {
			sleep(o.wait / 2)
			s.settle()
			sleep(o.wait - o.wait/2)
		}
		s.play(o)
		if o.wait > 0 || o.kind == opPauseController {
			s.settle()
		}
	}
	s.endFaults()
	s.awaitQuiet()
	for _, i := range s.plot.stopOrder {
		s.ctrls[i].stop(s.plot.force)
	}
	s.checkEnd()
}

// settle waits until every goroutine waits for time to pass, and checks the conditions that must hold then.
func (s *sim) settle() {
	synctest.Wait()
	s.checkCrowd()
	for _, c := range s.ctrls {
		c.checkIdle()
	}
}

func (s *sim) endFaults() {
	s.logf("the faults end")
	for _, c := range s.ctrls {
		c.start()
		c.activate()
		c.pause(false)
		c.watchAll()
	}
	s.calm.Store(true)
}

// awaitQuiet waits until the model is satisfied.
func (s *sim) awaitQuiet() {
	var waits []string
	for deadline := time.Now().Add(quietWithin); time.Now().Before(deadline); sleep(30 * time.Second) {
		s.collectGarbage()
		s.settle()
		waits = waits[:0]
		for _, c := range s.ctrls {
			waits = append(waits, c.unreconciled()...)
		}
		if len(waits) == 0 {
			return
		}
	}
	s.violated("not reconciled %v after the last fault:\n\t%s", quietWithin, strings.Join(waits, "\n\t"))
}

// checkEnd checks the state after everything was stopped.
func (s *sim) checkEnd() {
	synctest.Wait()
	if n := len(s.set.States()); n > 0 {
		s.violated("rule 15: %d watches are left", n)
	}
	if n := s.api.Open(); n > 0 {
		s.violated("%d connections are left", n)
	}
	for _, c := range s.ctrls {
		c.checkEnd()
	}
}

// sleep advances virtual time.
func sleep(d time.Duration) {
	if d > 0 {
		time.Sleep(d) //nolint:forbidigo // virtual time
	}
}
