// Package replay records the runs of a module, answers another module from what
// was recorded, and compares what both do.
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

// Costs of a shadow: waiting runs, and how long one waits for the controller to
// be idle.
const (
	maxShadowed    = 64
	shadowPatience = time.Second
	shadowLook     = 5 * time.Millisecond
)

// ErrShadowed is the error of a second shadow of one controller.
var ErrShadowed = errors.New("another shadow is already running for this controller: wait until it ends")

// Limit says for how long runs are compared.
type Limit struct {
	// For bounds the time, and Count the runs that are compared; 0 does not.
	For   time.Duration
	Count int
}

// Config says what shadows the live module, and for how long.
type Config struct {
	Limit

	Candidate *host.Candidate
	// Dry is the API under the candidate's policy. It holds writes back.
	Dry *kubeapi.API
	// Begin is called when runs are recorded; nil: nothing is.
	Begin func()
	// Idle reports whether the controller has nothing to do.
	Idle func() bool
	// Report is notified of each run that was compared.
	Report func(Compared) error
}

// Compared is a run of the live module that was compared with the shadow's.
type Compared struct {
	Object      abi.Key
	ReconcileID string
	Differences []shadow.Difference
}

// shadowing compares the runs of the live module with those of another.
type shadowing struct {
	runs   chan *recording // closed when no more come
	values redact.Values   // of Secrets that the runs have seen

	mu      sync.Mutex
	over    bool // runs is closed; guarded by mu
	dropped int  // guarded by mu

	candidate *host.Candidate
	dry       *kubeapi.API // under the candidate's policy; holds writes back
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

// Shadow runs a module on the input of the live one's runs, until the time or the
// count is over. The error wraps ErrShadowed while another one does.
func (r *Recorder) Shadow(ctx context.Context, cfg Config) (sum shadow.Summary, err error) {
	x := &shadowing{runs: make(chan *recording, maxShadowed), candidate: cfg.Candidate, dry: cfg.Dry}
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
		found, err := x.compare(ctx, live)
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		if err != nil {
			return sum, err
		}
		sum.Add(live.req.Key, found)
		if err := cfg.Report(Compared{live.req.Key, live.req.ID, found}); err != nil {
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

// awaitIdle waits until the controller has nothing to do, or patience is over: a
// shadow gets what time is left, and a little more.
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

// compare runs the other module as the live one ran, and says in what both
// differ. The error is one of the host's.
func (x *shadowing) compare(ctx context.Context, r *recording) ([]shadow.Difference, error) {
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
	found := shadow.Compare(live, shadowed, other.startedAt.Sub(r.startedAt))
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
				return "declares objects without the right to: " + messageOf(answer)
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
