// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
)

// want makes the controller run the module and the options of the spec. If the spec requests a shadow,
// the module first shadows the live one, and takes over only if it passes.
func (u *unit) want(ctx context.Context, o *reconciler, options wasmctl.ControllerOptions) error {
	request := o.meta.Annotations[v1alpha1.ForceAt]
	force := request != "" && request == o.requested() && request != u.forced
	if u.trial != nil && u.trial.digest != u.module.digest {
		u.endTrial()
	}
	var undecided error
	if next := u.module; force || next.digest != u.given.digest {
		cannotStart := !u.controller.Running() && u.controller.Err() != nil && !u.refused()
		ok := force || cannotStart || rolledBack(u.record(), next.digest)
		if !ok {
			ok, undecided = u.shadowed(ctx, o)
		}
		if ok {
			u.endTrial()
			u.given = next
		}
	} else if u.server.cfg.ShareObjects && rolledBack(u.record(), next.digest) {
		if err := u.controller.FollowReplicas(ctx); err != nil && !errors.Is(err, wasmctl.ErrNotRunning) {
			return err
		}
	}
	err := u.controller.Want(ctx, u.given, options, wasmctl.SwapOptions{Why: fmt.Sprintf("the Reconciler asks for it (generation %d)", o.meta.Generation), Force: force})
	switch {
	case passes(err):
		return undecided // the next start applies it, or it is in progress
	case errors.Is(err, wasmctl.ErrSettings):
		return &problem{reason: "ConfigRefused", message: err.Error(), stalled: true}
	case err != nil && ctx.Err() != nil:
		return err
	case errors.Is(err, share.ErrMemoryBudget):
		return &problem{reason: "MemoryBudget", message: err.Error()}
	}
	if u.forced = request; force {
		u.refusal = nil
	}
	if err != nil && !errors.Is(err, wasmctl.ErrSameModule) { // only another module helps
		return &problem{reason: "ModuleRefused", message: err.Error(), stalled: true}
	}
	return undecided
}

// first returns the module for the start of the controller. It is the module that was live last, so that
// the wanted module is then swapped in as if the process had never ended.
func (u *unit) first(ctx context.Context, o *reconciler, user string) (*fetched, error) {
	live := o.status.Live
	if live == nil || live.Digest == u.module.digest || live.Image == "" {
		return u.module, nil
	}
	before := *o
	before.spec.Module.Image = live.Image
	if ref, ok := strings.CutPrefix(live.Image, configMapImage); ok {
		name, key, _ := strings.Cut(ref, "/")
		before.spec.Module.ConfigMapKeyRef = &v1alpha1.KeyRef{Name: name, Key: key}
	} else {
		before.spec.Module.ConfigMapKeyRef = nil
	}
	m, err := u.server.fetch(ctx, &before, user)
	switch {
	case err == nil && m.digest == live.Digest:
		return m, nil
	case u.refused() && err != nil:
		return nil, err
	case u.refused():
		return nil, notFetched("NotFound", fmt.Errorf("%s no longer has the digest of the live module, %s, and the wanted module was refused because it differs from the live one", live.Image, live.Digest), false)
	}
	return u.module, nil
}

// rolledBack reports whether a module was rolled back according to a record.
func rolledBack(record, digest string) bool {
	var e ledger.Entry
	err := json.Unmarshal([]byte(record), &e)
	_, failed := e.Failure(digest)
	return err == nil && failed
}
