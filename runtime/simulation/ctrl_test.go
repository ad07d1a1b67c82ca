// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// ctrl is a controller of the simulation across its restarts, and the state of the checks.
type ctrl struct {
	*sim
	spec *ctrlSpec

	// Of the current incarnation; owned by the simulation's own goroutine, except where noted.
	c         *controller.Controller
	cache     *controller.Cache // set before it runs
	active    chan struct{}     // nil if it is not a standby
	activated bool
	force     chan struct{}
	cancel    context.CancelFunc
	ended     chan error
	chans     chan trigger.Trigger

	mu       sync.Mutex
	handles  []*controller.Handle // guarded by mu; by relation; nil if it is not watched
	epochs   []int                // guarded by mu; the number of watches that a relation has had
	paused   bool                 // guarded by mu
	open     bool                 // guarded by mu; a run has started
	jobs     int                  // guarded by mu; that run
	stopped  bool                 // guarded by mu
	running  map[abi.Key]*run     // guarded by mu
	last     map[abi.Key]*run     // guarded by mu; the last run of each key
	fails    map[abi.Key]int      // guarded by mu; consecutive failed runs
	required map[abi.Key]int64    // guarded by mu; the last run must not have started before
	// requiredIf is like required, for objects that exist in the end. An object that the controller did not know when
	// it was triggered runs when it becomes known.
	requiredIf map[abi.Key]int64     // guarded by mu
	due        map[abi.Key]time.Time // guarded by mu; when its own requeue may start
	asked      map[abi.Key]int       // guarded by mu; calls of map by config
	wrote      map[abi.Key][]written // guarded by mu; by the current run
	awaited    map[abi.Key][]written // guarded by mu; by the previous run

	// Of all incarnations.
	runs      map[abi.Key]int       // guarded by mu
	applied   map[types.UID]abi.Key // guarded by mu; objects that were reconciled
	acquired  atomic.Int64          // acquired guests
	mapped    atomic.Int64          // events of slow mappers
	finalized map[types.UID]bool    // guarded by mu; objects with a successful finalize
	seen      map[sight]int64       // guarded by mu; with the version
}

// sight records that a run of an object saw a related object that names it.
type sight struct {
	uid types.UID
	key abi.Key
}

func newCtrl(s *sim, spec *ctrlSpec) *ctrl {
	c := &ctrl{sim: s, spec: spec, runs: map[abi.Key]int{}, applied: map[types.UID]abi.Key{}, finalized: map[types.UID]bool{}, seen: map[sight]int64{}}
	if spec.standby {
		c.active = make(chan struct{})
	}
	return c
}

func (c *ctrl) finalizerName() string { return group + "/" + c.spec.name }

func (c *ctrl) isRunning() bool { return c.cancel != nil }

// config is the controller's config.
func (c *ctrl) config(cache *controller.Cache) controller.Config {
	cfg := controller.Config{
		Config: applier.Config{
			Controller: c.spec.name, Module: (*module)(c), Cluster: (*cluster)(c), Deletes: c.spec.deletes, AwaitWrites: c.spec.awaitWrites,
			Observer: applier.EndedFunc(c.onOutcome),
		},
		Hooks: (*module)(c), Watches: c.set, Cache: cache, Pool: c.pool,
		For: controller.Watch{
			Kind: gvk(c.spec.kind.Kind), Resource: c.spec.kind.GVR(), ClusterScoped: !c.spec.kind.Namespaced,
			Namespaces: c.spec.namespaces, LabelSelector: c.spec.selector, Predicates: c.spec.predicates,
		},
		Concurrency: c.spec.concurrency, Debounce: c.spec.debounce, DrainTimeout: c.spec.drain,
		Active:   c.active,
		Triggers: []trigger.Source{trigger.Chan[trigger.Trigger]{C: c.chans}},
		OnStart:  c.onStart, OnEnd: c.onEnd,
	}
	if c.spec.finalizer {
		cfg.Finalizer = c.finalizerName()
	}
	for i := range c.spec.relations {
		if !c.spec.relations[i].late {
			cfg.Related = append(cfg.Related, c.watch(i))
		}
	}
	return cfg
}

// watch is the watch of a relation.
func (c *ctrl) watch(i int) controller.Watch {
	w := &c.spec.relations[i]
	mapper, err := queue.ParseMap(w.spec, queue.Relation{
		Group: group, Kind: c.spec.kind.Kind, ClusterScoped: !c.spec.kind.Namespaced, Resource: w.kind.GVR().GroupResource().String(),
	})
	if err != nil {
		panic(err)
	}
	if mapper != nil && c.plot.slowMappers {
		mapper = c.slow(mapper)
	}
	return controller.Watch{
		Kind: gvk(w.kind.Kind), Resource: w.kind.GVR(), Namespaces: w.namespaces, LabelSelector: w.selector,
		MetadataOnly: w.metadata, Optional: w.optional, Owned: w.owned, Map: mapper, Predicates: w.predicates,
	}
}

// slow makes a mapper slow, so that the events of its watch accumulate.
func (c *ctrl) slow(mapper queue.Mapper) queue.Mapper {
	return func(dst []queue.Request, ev reflector.Event) []queue.Request {
		if r := c.rng("mapper", c.spec.name, ev.Ref(), c.mapped.Add(1)); !c.calm.Load() && chance(r, 0.7) {
			sleep(time.Duration(r.IntN(int(900 * time.Millisecond))))
		}
		return mapper(dst, ev)
	}
}

// start starts the controller unless it is running.
func (c *ctrl) start() {
	if c.isRunning() {
		return
	}
	c.mu.Lock()
	c.paused, c.open, c.stopped, c.jobs = false, false, false, 0
	c.running, c.last, c.fails = map[abi.Key]*run{}, map[abi.Key]*run{}, map[abi.Key]int{}
	c.required, c.due, c.wrote = map[abi.Key]int64{}, map[abi.Key]time.Time{}, map[abi.Key][]written{}
	c.awaited = map[abi.Key][]written{}
	c.asked, c.requiredIf = map[abi.Key]int{}, map[abi.Key]int64{}
	c.handles, c.epochs = make([]*controller.Handle, len(c.spec.relations)), make([]int, len(c.spec.relations))
	for i := range c.spec.relations {
		if !c.spec.relations[i].late {
			c.epochs[i] = 1
		}
	}
	c.mu.Unlock()
	c.chans, c.cache = make(chan trigger.Trigger), controller.NewCache()
	var err error
	if c.c, err = controller.New(c.config(c.cache)); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.force, c.ended = cancel, make(chan struct{}), make(chan error, 1)
	c.crowded = true
	c.logf("%s starts", c.spec.name)
	go func() { c.ended <- c.c.Run(ctx, c.force) }()
}

// stop stops the controller and checks how long that takes (rule 9).
func (c *ctrl) stop(force bool) {
	if !c.isRunning() {
		return
	}
	begin := time.Now()
	limit := cmp.Or(c.spec.drain, runner.DefaultDrainTimeout)
	c.logf("%s stops, force %t", c.spec.name, force)
	c.cancel()
	if force {
		close(c.force)
		limit = 0
	}
	err := <-c.ended
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	if took := time.Since(begin); took > limit+time.Second {
		c.violated("rule 9: %s: the stop took %v", c.spec.name, took)
	}
	if err != nil && !errors.Is(err, runner.ErrDrainTimeout) && !errors.Is(err, runner.ErrForced) {
		c.violated("%s: Run: %v", c.spec.name, err)
	}
	c.logf("%s has stopped: %v", c.spec.name, err)
	c.cancel, c.c = nil, nil
}

// activate elects a standby.
func (c *ctrl) activate() {
	if c.active != nil && !c.activated {
		c.activated = true
		close(c.active)
		c.logf("%s is elected", c.spec.name)
	}
}

// discard creates another controller with the same watches and does not run it.
func (c *ctrl) discard() {
	other, err := controller.New(c.config(controller.NewCache()))
	if err != nil {
		c.t.Fatal(err)
	}
	other.Release()
}

func (c *ctrl) pause(on bool) {
	if !c.isRunning() || on == c.c.Stats().Paused {
		return
	}
	c.logf("%s paused: %t", c.spec.name, on)
	if on {
		c.c.Pause()
		c.waitIdle()
	}
	c.mu.Lock()
	c.paused = on
	c.mu.Unlock()
	if !on {
		c.c.Resume()
	}
}

// toggleWatch adds or removes the watch of a relation.
func (c *ctrl) toggleWatch(r *rand.Rand) {
	if !c.isRunning() || len(c.spec.relations) == 0 {
		return
	}
	i := r.IntN(len(c.spec.relations))
	if c.handles[i] == nil {
		c.addWatch(i)
		return
	}
	c.logf("%s: no longer watches %s", c.spec.name, c.spec.relations[i].kind.Resource)
	c.c.RemoveWatch(c.handles[i])
	c.mu.Lock()
	c.handles[i] = nil
	c.mu.Unlock()
}

func (c *ctrl) addWatch(i int) {
	if c.epochs[i] > 0 && c.handles[i] == nil && !c.spec.relations[i].late {
		return // part of the config: there is no handle for removing it
	}
	c.mu.Lock()
	c.epochs[i]++ // before its first event can lead to a run
	c.mu.Unlock()
	h, err := c.c.AddWatch(c.watch(i))
	if err != nil {
		c.violated("%s: AddWatch: %v", c.spec.name, err)
		return
	}
	c.logf("%s: watches %s", c.spec.name, c.spec.relations[i].kind.Resource)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handles[i] = h
}

// watchAll adds the missing watches.
func (c *ctrl) watchAll() {
	for i := range c.spec.relations {
		if c.handles[i] == nil {
			c.addWatch(i)
		}
	}
}

// trigger requests reconciles of all objects or of some, directly or through the channel.
func (c *ctrl) trigger(r *rand.Rand) {
	if !c.isRunning() {
		return
	}
	t := trigger.Trigger{All: chance(r, 0.3), Low: chance(r, 0.5)}
	for range r.IntN(3) {
		t.Refs = append(t.Refs, c.key(r, c.spec.kind))
	}
	now := c.seq.Add(1)
	there := c.api.All(c.spec.kind)
	c.logf("%s: triggered: %+v", c.spec.name, t)
	switch {
	case t.All && len(t.Refs) == 0:
		c.c.TriggerAll(context.Background(), abi.ReasonModuleSwapped)
	case chance(r, 0.5):
		c.c.Trigger(context.Background(), t)
	default:
		c.chans <- t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range t.Refs {
		c.required[key] = now
	}
	for key := range there {
		if t.All {
			c.requiredIf[key] = now
		}
	}
}

// onStart is called from the runner's loop before each job.
func (c *ctrl) onStart(time.Duration, scheduler.Priority) {
	if c.sim.jobs.Add(1) > maxJobs {
		c.tooMany("jobs")
	}
	total := int(c.inPool.Add(1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs++; c.jobs > c.spec.concurrency {
		c.violated("rule 5: %s: %d jobs at once, the limit is %d", c.spec.name, c.jobs, c.spec.concurrency)
	}
	if c.plot.pool > 0 && total > c.plot.pool {
		c.violated("rule 5: %d jobs at once in the pool of %d", total, c.plot.pool)
	}
	if c.paused {
		c.violated("%s: a job starts while it is paused", c.spec.name)
	}
	if !c.open {
		c.open = true
		c.checkReady()
	}
}

func (c *ctrl) onEnd(time.Duration) {
	c.inPool.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs--
}

// onOutcome is called at the end of each run.
func (c *ctrl) onOutcome(out *applier.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.running[out.Key]
	if r == nil { // no guest was called
		r = &run{seq: c.seq.Add(1)}
	}
	delete(c.running, out.Key)
	r.out, r.from, r.to = *out, time.Now().Add(-out.Duration), time.Now()
	c.logf("%s: %s: ran for %v: %s by %s, error %v", c.spec.name, out.Key, out.Reasons, actionText(out.Action), out.DecidedBy, out.Err)
	c.checkOutcome(r)
	c.last[out.Key] = r
	switch {
	case errors.Is(out.Err, applier.ErrPaused), errors.Is(out.Err, applier.ErrInterrupted):
	case !out.Failed(), r.guest && r.object == nil && !out.Action.Requeue:
		delete(c.fails, out.Key)
	default:
		c.fails[out.Key]++
	}
	c.awaited[out.Key] = c.wrote[out.Key]
	delete(c.wrote, out.Key)
	delete(c.due, out.Key)
	if out.Action.Requeue {
		c.due[out.Key] = time.Now().Add(out.Action.After)
	}
}
