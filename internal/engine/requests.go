// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/internal/rollout"
)

// request is a request to the loop.
type request struct {
	life.Event

	module   Borrower          // of Digest; nil for an earlier revision
	canary   *rollout.Canary   // for Swap; if nil, that of the options
	settings map[string]string // for Want
	// do is the task. misfit is the error of a canary that refuses new settings.
	do       func(ctx context.Context, c *Controller) (misfit, err error)
	answered chan answer // has a buffer of one
}

// answer is the answer to a request.
type answer struct {
	revision uint64
	onCanary bool
	shadow   *rollout.Prepared // for Shadow
	engine   *Controller
	run      context.Context // of the engine
	err      error
}

// accept registers a request and passes it to the core.
func (l *loop) accept(r *request) {
	if c := l.current; c != nil && c.native != nil {
		r.answered <- answer{err: ErrNative}
		return
	}
	l.ids++
	r.ID = l.ids
	if r.canary == nil && l.current != nil {
		r.canary = &l.current.rollout.Options.Canary
	}
	if r.canary != nil {
		r.Canary = canaryText(r.canary)
	}
	l.open[r.ID] = r
	l.step(r.Event)
}

// canaryText describes a canary, or returns an empty string if it is not enabled.
func canaryText(c *rollout.Canary) string {
	if !c.Enabled() {
		return ""
	}
	return c.String()
}

// reply answers a request.
func (l *loop) reply(e *life.Effect) {
	r := l.open[e.ID]
	delete(l.open, e.ID)
	a := answer{revision: e.Number, onCanary: e.OnCanary, engine: l.current, run: l.run, err: l.err(e)}
	if r.Kind == life.Shadow && a.err == nil {
		a.shadow = l.take()
	}
	r.answered <- a
}

// do runs the task of a request.
func (l *loop) do(id uint64) []life.Event {
	r := l.open[id]
	delete(l.open, id)
	misfit, err := r.do(l.run, l.current)
	r.answered <- answer{err: err}
	return misfits(misfit)
}

// configure gives the module the settings that are wanted.
func (l *loop) configure(id uint64) []life.Event {
	r := l.open[id]
	_, misfit, err := l.current.setSettings(l.run, r.settings)
	ev := r.Event
	ev.Kind, ev.Outcome, ev.Err = life.Configured, life.OK, err
	if err != nil {
		ev.Outcome, ev.Err = life.Error, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return append(misfits(misfit), ev)
}

// misfits returns the event of a canary that refuses new settings, if misfit is not nil.
func misfits(misfit error) []life.Event {
	if misfit == nil {
		return nil
	}
	return []life.Event{{Kind: life.Misfit, Err: misfit}}
}

// Swap makes the module with these bytes live, or runs it as a canary first, and returns
// its revision. The error wraps host.ErrSameModule if that is already the case.
func (l *Life) Swap(ctx context.Context, wasm []byte, o rollout.SwapOptions) (revision uint64, canary bool, err error) {
	ev := life.Event{Kind: life.Swap, Digest: load.DigestOf(wasm), Force: o.Force, Why: o.Why}
	a, err := l.ask(ctx, &request{Event: ev, module: Bytes(wasm), canary: o.Canary})
	return a.revision, a.onCanary, err
}

// Borrower is a module whose bytes are outside of memory. The caller of Borrow must call done
// when it no longer needs them.
type Borrower interface {
	Borrow(ctx context.Context) (wasm []byte, done func(), err error)
}

// Bytes is a module whose bytes the caller has.
type Bytes []byte

// Borrow implements Borrower.
func (b Bytes) Borrow(context.Context) (wasm []byte, done func(), err error) {
	return b, func() {}, nil
}

// stored is a module that a Source has stored.
type stored struct {
	source Source
	digest string
}

// Borrow implements Borrower.
func (s stored) Borrow(ctx context.Context) (wasm []byte, done func(), err error) {
	return s.source.Borrow(ctx, s.digest)
}

// Wanted is the state that a controller is to reach.
type Wanted struct {
	Digest string
	// Module is read only if it is swapped in.
	Module   Borrower
	Settings map[string]string
	Differs  life.Difference // between its options and those that were wanted before
	Force    bool            // accept a module that was rolled back
	Why      string          // for the log
}

// Want brings the controller to the wanted state: by a swap, by new settings or by a
// restart, or not at all if nothing differs. It does not wait for a restart, nor for the
// swap that follows it. If the controller does not run, it is loaded in that state.
func (l *Life) Want(ctx context.Context, w Wanted) error {
	ev := life.Event{Kind: life.Want, Digest: w.Digest, Differs: w.Differs, Force: w.Force, Why: w.Why}
	_, err := l.ask(ctx, &request{Event: ev, module: w.Module, settings: w.Settings})
	return err
}

// Rollback makes the code of an earlier revision live again; 0 is the previous revision.
func (l *Life) Rollback(ctx context.Context, to uint64, why string) (revision uint64, canary bool, err error) {
	a, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Rollback, Number: to, Why: why}})
	return a.revision, a.onCanary, err
}

// FollowReplicas rolls back the live module, or ends the canary, if another replica has
// rolled it back.
func (l *Life) FollowReplicas(ctx context.Context) error {
	_, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Follow}})
	return err
}

// Promote makes the canary live for all objects. It returns the live revision.
func (l *Life) Promote(ctx context.Context, why string) (uint64, error) {
	a, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Promote, Why: why}})
	return a.revision, err
}

// Abort gives the objects of the canary back to the live revision. It returns the live
// revision.
func (l *Life) Abort(ctx context.Context, why string) (uint64, error) {
	a, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Abort, Why: why}})
	return a.revision, err
}

// Do runs a task on the loop while no revision is being prepared, and returns its error.
func (l *Life) Do(ctx context.Context, do func(context.Context, *Controller) (misfit, err error)) error {
	_, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Task}, do: do})
	return err
}

// Configure replaces the settings of the options. If the module refuses the new settings,
// the old ones stay in force. It returns the number of the settings in force.
func (l *Life) Configure(ctx context.Context, settings map[string]string) (number int64, err error) {
	err = l.Do(ctx, func(ctx context.Context, c *Controller) (misfit, err error) {
		number, misfit, err = c.setSettings(ctx, settings)
		return misfit, err
	})
	return number, err
}

// Override changes settings on top of those of the options, until the controller ends; a
// nil value leaves the setting to the manifest. It returns the number of the settings in
// force.
func (l *Life) Override(ctx context.Context, change map[string]*string) (number int64, err error) {
	err = l.Do(ctx, func(ctx context.Context, c *Controller) (misfit, err error) {
		number, misfit, err = c.override(ctx, change)
		return misfit, err
	})
	return number, err
}

// ShadowOptions set how long a module shadows the live one.
type ShadowOptions struct {
	replay.Limit

	// All makes the live module reconcile all objects once.
	All bool
}

// Shadow runs a module on the input of the live module's runs, without sending its writes,
// until the time or the count is reached.
func (l *Life) Shadow(ctx context.Context, m Borrower, o ShadowOptions, report func(replay.Compared) error) (sum shadow.Summary, err error) {
	a, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Shadow}, module: m})
	if err != nil {
		return sum, err
	}
	c, candidate := a.engine, a.shadow.Candidate
	defer candidate.Discard()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.run, func() { cancel(ErrStopping) })()
	defer c.rollout.Shadows(0)
	return c.recorder.Shadow(ctx, replay.Config{
		Limit: o.Limit, Candidate: candidate, Dry: a.shadow.API, Secrets: c.Telemetry.Secrets, Report: report,
		Begin: func() {
			c.rollout.Shadows(candidate.Number())
			if o.All {
				c.Runtime.TriggerAll(ctx, abi.ReasonTriggered)
			}
		},
		Idle: func() bool { st := c.Runtime.Stats(); return st.Ready == 0 && st.Running == 0 },
	})
}

// sameModule returns the error for a module that is already live.
func sameModule(err error) error {
	if errors.Is(err, host.ErrSameModule) {
		return err
	}
	return host.ErrSameModule
}
