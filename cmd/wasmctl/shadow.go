package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/shadow"
)

// What a shadow costs: runs that wait to be compared, and for how long one
// waits for the controller to be idle.
const (
	maxShadowed    = 64
	shadowPatience = time.Second
	shadowLook     = 5 * time.Millisecond
)

// errShadowed is the error of a second shadow of one controller.
var errShadowed = errors.New("another module shadows this controller now: wait for its end")

// shadowing compares the runs of the live module with those of another.
type shadowing struct {
	runs   chan *recording // closed when no more come
	values redact.Values   // of Secrets that the runs have seen

	mu      sync.Mutex
	over    bool // runs is closed; guarded by mu
	dropped int  // guarded by mu

	candidate *host.Candidate
	dry       *kubeapi.API // under the candidate's policy; holds writes back
	plan      *plan
}

// offer hands over a run that has ended, unless too many wait.
func (x *shadowing) offer(r *recording) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	select {
	case x.runs <- r:
	default:
		x.dropped++
	}
}

// end takes no more runs. Those that wait are compared still.
func (x *shadowing) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.over = true
		close(x.runs)
	}
}

// Shadow implements admin.Service.
func (p *process) Shadow(ctx context.Context, name string, wasm []byte, how admin.ShadowHow, tell func(admin.Shadowed) error) (shadow.Summary, error) {
	s, err := p.session(name)
	if err != nil {
		return shadow.Summary{}, err
	}
	return s.shadow(ctx, wasm, how, tell)
}

// shadow runs a module on the input of the live one's runs, until the time or
// the count is over.
func (s *session) shadow(ctx context.Context, wasm []byte, how admin.ShadowHow, tell func(admin.Shadowed) error) (sum shadow.Summary, err error) {
	ctx, release := s.whileServed(ctx)
	defer release()
	x := &shadowing{runs: make(chan *recording, maxShadowed)}
	if err := s.do(ctx, func(ctx context.Context) error {
		return s.meanwhile(ctx, func(ctx context.Context) error { return s.prepareShadow(ctx, x, wasm) })
	}); err != nil {
		return sum, admin.Refuse(err)
	}
	defer x.candidate.Discard()
	if !s.runs.shadow.CompareAndSwap(nil, x) {
		return sum, admin.Refuse(errShadowed)
	}
	s.trials.shadows(x.candidate.Number())
	defer s.trials.shadows(0)
	recorded, stop := context.WithTimeout(ctx, how.For)
	defer stop()
	disarm := context.AfterFunc(recorded, x.end)
	defer func() {
		disarm()
		s.runs.shadow.Store(nil)
		x.end()
	}()
	if how.All {
		s.controller.TriggerAll(ctx, abi.ReasonTriggered)
	}
	for r := range x.runs {
		s.awaitIdle(ctx)
		found, err := x.compare(ctx, r)
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		if err != nil {
			return sum, err
		}
		sum.Add(r.req.Key, found)
		if err := tell(admin.Shadowed{Object: r.req.Key.String(), ReconcileID: r.req.ID, Differences: found}); err != nil {
			return sum, err
		}
		if sum.Runs == how.Count {
			break
		}
	}
	if ctx.Err() != nil {
		return sum, context.Cause(ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	sum.Dropped = x.dropped
	return sum, nil
}

// errStopping is the error of a shadow whose controller ends.
var errStopping = errors.New("the controller is stopping")

// whileServed returns a context that ends with the controller too.
func (s *session) whileServed(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.served:
			cancel(errStopping)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		wg.Wait()
	}
}

// prepareShadow loads the module. It is called by serve.
func (s *session) prepareShadow(ctx context.Context, x *shadowing, wasm []byte) error {
	var err error
	x.candidate, err = s.module.Prepare(ctx, wasm, func(m *abi.Manifest) (_ host.API, err error) {
		if x.plan, err = s.accept(ctx, m); err != nil {
			return nil, err
		}
		x.dry = s.api.WithPolicy(x.plan.policy).WithObserver(nil).WithDryRun(kubeapi.DryRunServer).
			WithLimits(kubeapi.Limits{}).WithLimits(apiLimits(s.limitsFor(m))) // its own: the live one's would count together
		return player{x.dry}, nil
	})
	return err
}

// awaitIdle waits until the controller has nothing to do, or patience is over: a
// shadow gets what time is left, and a little more.
func (s *session) awaitIdle(ctx context.Context) {
	tick := time.NewTicker(shadowLook)
	defer tick.Stop()
	limit := time.NewTimer(shadowPatience)
	defer limit.Stop()
	for {
		if st := s.controller.Stats(); st.Ready == 0 && st.Running == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// compare runs the other module as the live one ran, and says in what both
// differ. The error is one of the host's.
func (x *shadowing) compare(ctx context.Context, r *recording) ([]shadow.Difference, error) {
	guest, release, err := x.candidate.AcquireAside(ctx)
	if err != nil {
		if _, own := errors.AsType[*abi.CallError](err); !own {
			return nil, err
		}
		guest, release = nil, func() {}
	}
	defer release()
	other := recording{req: r.req, finalize: r.finalize, began: time.Now(), err: err}
	if guest != nil {
		play := &playback{recorded: r.exchanges}
		ctx := context.WithValue(abi.WithRun(ctx, &abi.Run{ID: r.req.ID, Key: r.req.Key, Object: r.req.Object}), playbackKey{}, play)
		other.run(ctx, guest)
		other.exchanges = play.asked
	}
	live, shadowed := x.outcome(r), x.outcome(&other)
	if shadowed.Error == "" {
		shadowed.Error = x.denied(ctx, r.req.Key, other.result.Declared)
	}
	found := shadow.Compare(live, shadowed, other.began.Sub(r.began))
	for i := range found {
		found[i].Live, found[i].Shadow = x.values.Any(found[i].Live), x.values.Any(found[i].Shadow)
	}
	return found, nil
}

// denied says what the other module's policy does not let it declare for an
// object.
func (x *shadowing) denied(ctx context.Context, of abi.Key, d *abi.Declared) string {
	if d == nil {
		return ""
	}
	for _, child := range d.Apply {
		o, err := abi.DecodeObject(child)
		if err != nil {
			return err.Error()
		}
		// A child has the namespace of its owner, unless it is cluster-scoped.
		for _, namespace := range []string{of.Namespace, ""} {
			req, err := abi.AppendValue(nil, map[string]any{"object": o, "namespace": namespace})
			if err != nil {
				return err.Error()
			}
			if answer, ok := x.dry.Admits(ctx, abi.OpAPIApply, req); !ok && answer.Status == abi.StatusDenied {
				return "declares what it may not: " + messageOf(answer)
			}
		}
	}
	return ""
}

func messageOf(r abi.Response) string {
	if m, err := abi.DecodeObject(r.Body); err == nil {
		if text, ok := m["message"].(string); ok {
			return text
		}
	}
	return r.Status.String()
}
