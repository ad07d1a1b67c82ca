// SPDX-License-Identifier: Apache-2.0

// Package replay records the runs of a module, runs another module with the recorded responses, and compares the two.
package replay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// Limits of a shadow: the number of waiting runs, and how long a run waits for the controller to be idle.
const (
	maxShadowed    = 64
	shadowPatience = time.Second
	shadowLook     = 5 * time.Millisecond
)

// ErrShadowed is returned for a second shadow of one controller.
var ErrShadowed = errors.New("another shadow is already running for this controller: wait until it ends")

// Limit determines for how long runs are compared.
type Limit struct {
	// For limits the time, and Count the number of compared runs; 0 means no limit.
	For   time.Duration
	Count int
}

// Config configures a shadow of the live module.
type Config struct {
	Limit

	Candidate *host.Candidate
	// Dry is the API with the candidate's policy. It does not carry out writes.
	Dry *kubeapi.API
	// Secrets are the values to hide in differences. They learn those that the runs read.
	Secrets *redact.Values
	// Begin, if not nil, is called when recording starts.
	Begin func()
	// Idle reports whether the controller is idle.
	Idle func() bool
	// Report is called for each compared run.
	Report func(Compared) error
}

// Compared is a run of the live module that was compared with that of the shadow.
type Compared struct {
	Object      abi.Key
	ReconcileID string
	Differences []shadow.Difference
}

// shadowing compares the runs of the live module with those of another one.
type shadowing struct {
	runs   chan sample    // closed at the end
	values *redact.Values // hidden in differences

	mu      sync.Mutex
	over    bool // runs is closed; guarded by mu
	dropped int  // guarded by mu

	candidate *host.Candidate
	dry       *kubeapi.API // with the candidate's policy; does not carry out writes
}

// sample is a run of the live module, or a request that it has judged.
type sample interface {
	// id returns the object, and the ID of the run or the request.
	id() (abi.Key, string)
	// compare gives the sample to the other module, and returns the differences. An error is a fault of the host.
	compare(ctx context.Context, x *shadowing) ([]shadow.Difference, error)
}

// offer passes on a completed run, unless too many are waiting.
func (x *shadowing) offer(r sample) {
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

// end stops accepting runs. Waiting runs are still compared.
func (x *shadowing) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.over = true
		close(x.runs)
	}
}

// Shadow runs a module with the input of the live module's runs, until the limit is reached. The error wraps ErrShadowed if another shadow
// is running.
func (r *Recorder) Shadow(ctx context.Context, cfg Config) (sum shadow.Summary, err error) {
	x := &shadowing{runs: make(chan sample, maxShadowed), candidate: cfg.Candidate, dry: cfg.Dry, values: cfg.Secrets}
	if !r.shadow.CompareAndSwap(nil, x) {
		return sum, ErrShadowed
	}
	recorded, stop := context.WithTimeout(ctx, cfg.For)
	defer stop()
	disarm := context.AfterFunc(recorded, x.end)
	defer func() {
		disarm()
		r.shadow.Store(nil)
		x.end()
	}()
	if cfg.Begin != nil {
		cfg.Begin()
	}
	for live := range x.runs {
		awaitIdle(ctx, cfg.Idle)
		found, err := live.compare(ctx, x)
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		if err != nil {
			return sum, err
		}
		key, id := live.id()
		sum.Add(key, found)
		if err := cfg.Report(Compared{key, id, found}); err != nil {
			return sum, err
		}
		if sum.Runs == cfg.Count {
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

// awaitIdle waits until the controller is idle, or for shadowPatience, so that a shadow uses mostly spare time.
func awaitIdle(ctx context.Context, idle func() bool) {
	tick := time.NewTicker(shadowLook)
	defer tick.Stop()
	limit := time.NewTimer(shadowPatience)
	defer limit.Stop()
	for !idle() {
		select {
		case <-tick.C:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *recording) id() (abi.Key, string) { return r.req.Key, r.req.ID }

// compare runs the other module with the recorded run.
func (r *recording) compare(ctx context.Context, x *shadowing) ([]shadow.Difference, error) {
	guest, release, err := x.candidate.AcquireExtra(ctx)
	if err != nil {
		if _, own := errors.AsType[*abi.CallError](err); !own {
			return nil, err
		}
		guest, release = nil, func() {}
	}
	defer release()
	other := recording{req: r.req, finalize: r.finalize, startedAt: time.Now(), err: err}
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
	return x.hidden(shadow.Compare(live, shadowed, other.startedAt.Sub(r.startedAt))), nil
}

// hidden returns differences without the values of Secrets.
func (x *shadowing) hidden(found []shadow.Difference) []shadow.Difference {
	for i := range found {
		found[i].Live, found[i].Shadow = x.values.Any(found[i].Live), x.values.Any(found[i].Shadow)
	}
	return found
}

// denied returns an error text if the other module's policy does not allow what it declares for an object.
func (x *shadowing) denied(ctx context.Context, of abi.Key, d *abi.Declared) string {
	if d == nil {
		return ""
	}
	for _, child := range d.Apply {
		o, err := abi.DecodeObject(child)
		if err != nil {
			return err.Error()
		}
		// A child is in the namespace of its owner, unless it is cluster-scoped.
		for _, namespace := range []string{of.Namespace, ""} {
			req, err := abi.AppendValue(nil, map[string]any{"object": o, "namespace": namespace})
			if err != nil {
				return err.Error()
			}
			if answer, ok := x.dry.Admits(ctx, abi.OpAPIApply, req); !ok && answer.Status == abi.StatusDenied {
				return "declares objects without permission to: " + messageOf(answer)
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
