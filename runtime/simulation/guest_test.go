// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
)

// module is a ctrl as the module that it runs: applier.Module and queue.Module, implemented in Go instead of Wasm.
type module ctrl

// guest is abi.Guest for one run.
type guest struct {
	c *ctrl
	r *rand.Rand // nil before the key is known
	// policies counts calls of ErrorPolicy.
	policies int
}

var (
	errGuest = errors.New("planned")
	errHost  = errors.New("the host has no guest")
)

// misbehaves draws whether a guest fails now.
func (c *ctrl) misbehaves(r *rand.Rand, p float64) bool {
	return !c.calm.Load() && chance(r, p*c.plot.guestMood)
}

// Acquire implements applier.Module.
func (m *module) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	c := (*ctrl)(m)
	r := c.rng("acquire", c.spec.name, c.acquired.Add(1))
	if c.misbehaves(r, 0.05) && !nap(ctx, upTo(r, time.Second)) {
		return nil, nil, ctx.Err()
	}
	if c.misbehaves(r, 0.03) {
		return nil, nil, errHost
	}
	return &guest{c: c}, func() {}, nil
}

// Map implements queue.Module, based on the content of a config.
func (m *module) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	c := (*ctrl)(m)
	c.mu.Lock()
	c.asked[ev.Key]++
	c.checkMapped(ev)
	r := c.rng("map", c.spec.name, ev.Key, c.asked[ev.Key])
	c.mu.Unlock()
	if c.misbehaves(r, 0.2) && !nap(ctx, upTo(r, 2*time.Second)) {
		return nil, ctx.Err()
	}
	if c.misbehaves(r, 0.2) {
		return nil, errGuest
	}
	var keys []abi.Key
	for _, b := range [][]byte{ev.Old, ev.New} {
		if b != nil {
			keys = append(keys, c.targets("func", decode(b))...)
		}
	}
	c.logf("%s: maps %s %s to %v", c.spec.name, ev.Type, ev.Key, keys)
	return keys, nil
}

// Filter implements queue.Module. It passes changes of the value, of the uid, and deletions.
func (m *module) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	c := (*ctrl)(m)
	r := c.rng("filter", c.spec.name, ev.Key, c.seq.Add(1))
	if c.misbehaves(r, 0.1) && !nap(ctx, upTo(r, time.Second)) {
		return false, ctx.Err()
	}
	if c.misbehaves(r, 0.1) {
		return false, errGuest
	}
	if ev.Old == nil || ev.New == nil {
		return true, nil
	}
	return filterValue(decode(ev.Old)) != filterValue(decode(ev.New)), nil
}

// Revision implements abi.Guest.
func (g *guest) Revision() uint64 { return 1 }

// Fuel implements abi.Guest.
func (g *guest) Fuel() int64 { return 0 }

// Reconcile implements abi.Guest.
func (g *guest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return g.run(ctx, req, false)
}

// Finalize implements abi.Guest.
func (g *guest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return g.run(ctx, req, true)
}

func (g *guest) run(ctx context.Context, req *abi.Request, finalize bool) (abi.Result, error) {
	c := g.c
	run := c.begin(req, finalize)
	g.r = c.rng("run", c.spec.name, req.Key, run.number)
	if c.plot.slow && !c.calm.Load() && chance(g.r, 0.8) && !nap(ctx, upTo(g.r, 20*time.Second)) {
		return abi.Result{}, ctx.Err()
	}
	if c.misbehaves(g.r, 0.3) && !nap(ctx, upTo(g.r, pick(g.r, 10*time.Millisecond, time.Second, 20*time.Second))) {
		return abi.Result{}, ctx.Err()
	}
	early := c.misbehaves(g.r, 0.2)
	if early {
		if res, err := g.fail(); res.Error != nil || err != nil {
			return res, err
		}
	}
	var res abi.Result
	if run.object != nil && !finalize {
		if err := g.work(ctx, run, &res); err != nil {
			return abi.Result{}, asResult(ctx, err, &res)
		}
	}
	if res.Error == nil && c.misbehaves(g.r, 0.15) {
		return g.fail()
	}
	if c.misbehaves(g.r, 0.2) {
		res.Action = abi.Action{Requeue: true, After: upTo(g.r, pick(g.r, 0, time.Millisecond, time.Second, time.Minute))}
	}
	if finalize && res.Error == nil && !res.Action.Requeue {
		c.mu.Lock()
		c.finalized[run.object.GetUID()] = true
		c.mu.Unlock()
	}
	return res, nil
}

// asResult turns the error of a write into a guest's result error.
func asResult(ctx context.Context, err error, res *abi.Result) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	class := abi.ErrorTransient
	if isConflict(err) {
		class = abi.ErrorConflict
	}
	*res = abi.Result{Error: &abi.ResultError{Class: class, Message: err.Error()}}
	return res.Error
}

// fail draws the failure of a run.
func (g *guest) fail() (abi.Result, error) {
	failed := func(class abi.ErrorClass, after time.Duration) (abi.Result, error) {
		return abi.Result{Error: &abi.ResultError{Class: class, Message: "planned", After: after}}, nil
	}
	switch g.r.IntN(9) {
	case 0, 1:
		return failed(abi.ErrorTransient, 0)
	case 2:
		return failed(abi.ErrorTransient, upTo(g.r, time.Minute))
	case 3:
		return failed(abi.ErrorConflict, 0)
	case 4:
		return failed(abi.ErrorPermanent, 0)
	case 5:
		return abi.Result{}, errHost
	case 6:
		return abi.Result{}, &abi.CallError{Kind: abi.FailureTrap, Func: "reconcile", Err: errGuest}
	case 7:
		return abi.Result{}, &abi.CallError{Kind: pick(g.r, abi.FailureTimeout, abi.FailureMemory), Func: "reconcile", Err: errGuest}
	default:
		return abi.Result{}, &abi.CallError{Kind: abi.FailureOutput, Func: "reconcile", Err: errGuest}
	}
}

// ErrorPolicy implements abi.Guest.
func (g *guest) ErrorPolicy(_ context.Context, f *abi.Failure) (abi.Result, error) {
	c := g.c
	c.mu.Lock()
	want := c.fails[f.Key] + 1
	c.mu.Unlock()
	if g.policies++; g.policies > 1 {
		c.violated("rule 19: %s: error_policy was called %d times for one run of %s", c.spec.name, g.policies, f.Key)
	}
	if f.Attempt != want || f.FirstFailed.IsZero() {
		c.violated("rule 19: %s: %s: attempt %d, want %d; first failed at %v", c.spec.name, f.Key, f.Attempt, want, f.FirstFailed)
	}
	r := g.r
	if r == nil { // the run has not reached the guest
		r = c.rng("policy", c.spec.name, f.Key, f.Attempt)
	}
	switch {
	case chance(r, 0.6):
		return abi.Result{}, abi.ErrNoErrorPolicy
	case chance(r, 0.2):
		return abi.Result{}, errGuest
	case c.misbehaves(r, 0.1):
		return abi.Result{}, nil // gives up
	}
	return abi.Result{Action: abi.Action{Requeue: true, After: upTo(r, 10*time.Second)}}, nil
}

// nap is a pause of a guest; it returns false if the run was interrupted.
func nap(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func actionText(a abi.Action) string {
	if !a.Requeue {
		return "await"
	}
	return fmt.Sprintf("requeue after %v", a.After)
}

// decode decodes an object from msgpack.
func decode(b []byte) *unstructured.Unstructured {
	o, err := abi.DecodeObject(b)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: o}
}

func encode(o *unstructured.Unstructured) []byte {
	b, err := abi.AppendValue(nil, o.Object)
	if err != nil {
		panic(err)
	}
	return b
}
