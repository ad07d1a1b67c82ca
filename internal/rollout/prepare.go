// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// prepareLimit bounds the wait for kinds that the API server does not have yet, and again
// the wait for watches to sync.
const prepareLimit = time.Minute

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, prepareLimit, fmt.Errorf("not ready within %v", prepareLimit))
}

// SwapOptions set how a module is swapped in.
type SwapOptions struct {
	// Force accepts a module that was rolled back.
	Force bool
	// Canary overrides the canary of the controller's options, unless it is nil.
	Canary *Canary
	// Why is the reason for the log.
	Why string
}

// Prepared is a revision that can become live: its watches have synced.
type Prepared struct {
	*host.Candidate

	// API enforces the policy and the limits of the revision; the API of a shadow changes
	// nothing in the cluster.
	API *kubeapi.API

	plan     *plan.Plan
	list     []wanted
	added    map[string]*controller.Handle // watches that only this revision has
	started  time.Time                     // when the preparation began
	settings int64                         // the number of the settings in force at that time
}

// Prepare prepares the module with these bytes or, if wasm is nil, the earlier revision
// with this number; 0 is the previous revision. It does not touch anything that the live
// revision uses, so it may run concurrently with the loop, which must not change the
// Rollout in the meantime. After an error nothing remains.
func (r *Rollout) Prepare(ctx context.Context, wasm []byte, to uint64) (_ *Prepared, err error) {
	digest := ""
	if wasm != nil {
		digest = load.DigestOf(wasm)
	}
	defer r.prepare(digest)()
	up := &Prepared{started: time.Now(), settings: r.settings()}
	connect := func(digest string, m *abi.Manifest) (_ operation.API, err error) {
		if up.plan, err = r.accept(ctx, digest, m); err != nil {
			return nil, err
		}
		up.API = r.cfg.API.WithPolicy(up.plan.Policy).WithRate(r.cfg.Host.LimitsFor(m).APIRate)
		return r.cfg.Recorder.API(up.API), nil
	}
	if wasm != nil {
		up.Candidate, err = r.cfg.Module.Prepare(ctx, wasm, connect)
	} else {
		up.Candidate, err = r.cfg.Module.PrepareKept(ctx, to, connect)
	}
	if err != nil {
		return nil, err
	}
	if err := r.watch(ctx, up); err != nil {
		up.Discard()
		return nil, err
	}
	return up, nil
}

// watch starts the watches that only the candidate has, and waits until they have synced.
func (r *Rollout) watch(ctx context.Context, up *Prepared) (err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := CheckPredicates(up.Candidate, r.cfg.Kind, up.plan.Related...); err != nil {
		return err
	}
	if up.list, err = r.wants(up.plan, up.Candidate); err != nil {
		return err
	}
	up.added, err = r.watches.prepare(ctx, up.list, candidateHooks{up.Candidate, r.cfg.Module})
	return err
}

// PrepareShadow prepares a module that runs concurrently with the live one and changes
// nothing in the cluster. Like Prepare, it may run concurrently with the loop.
func (r *Rollout) PrepareShadow(ctx context.Context, wasm []byte) (*Prepared, error) {
	up := &Prepared{}
	var err error
	up.Candidate, err = r.cfg.Module.Prepare(ctx, wasm, func(digest string, m *abi.Manifest) (operation.API, error) {
		next, err := r.accept(ctx, digest, m)
		if err != nil {
			return nil, err
		}
		api := r.cfg.API.WithPolicy(next.Policy).WithObserver(nil).WithDryRun(kubeapi.DryRunServer)
		// A shadow has a limiter of its own; otherwise its requests would count against the
		// rate of the live module.
		up.API = api.WithRate(0).WithRate(r.cfg.Host.LimitsFor(m).APIRate)
		return replay.Player(up.API), nil
	})
	return up, err
}

// Discard gives up a prepared revision.
func (r *Rollout) Discard(up *Prepared) {
	up.Discard()
	r.watches.remove(up.added)
}
