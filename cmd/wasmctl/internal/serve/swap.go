package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// swap gives the controller the module that the spec asks for.
func (u *unit) swap(ctx context.Context, o *reconciler) error {
	force := o.meta.Annotations[v1alpha1.ForceAt]
	again := force != "" && force == o.requested() && force != u.forced
	if u.trial != nil && u.trial.digest != u.module.digest {
		u.endTrial()
	}
	if u.module.digest == u.swapped && !again {
		if u.server.cfg.ShareObjects && rolledBack(u.record(), u.swapped) {
			if err := u.controller.FollowReplicas(ctx); !errors.Is(err, wasmctl.ErrNotRunning) {
				return err
			}
		}
		return nil
	}
	u.asked = u.module.digest
	if !again && rolledBack(u.record(), u.module.digest) {
		u.swapped = u.module.digest
		return nil
	}
	if !again {
		if ok, err := u.shadowed(ctx, o); !ok || err != nil {
			return err
		}
	}
	u.endTrial()
	_, err := u.controller.Swap(ctx, u.module, wasmctl.SwapOptions{Why: "the Reconciler asks for it", Force: again})
	switch {
	case errors.Is(err, wasmctl.ErrNotRunning), errors.Is(err, wasmctl.ErrStopping):
		return nil // later, or with its next start
	case errors.Is(err, wasmctl.ErrPreparing):
		return nil
	case err == nil || errors.Is(err, wasmctl.ErrSameModule):
		u.swapped, u.forced, u.refusal = u.module.digest, force, nil
		return nil
	case ctx.Err() != nil:
		return err
	}
	u.swapped, u.forced = u.module.digest, force // it is refused: another one helps
	return &problem{reason: "ModuleRefused", message: err.Error(), stalled: true}
}

// first is the module that a start begins with: the one that was live last, so that
// the wanted one is swapped in as if the process had never ended.
func (u *unit) first(ctx context.Context, o *reconciler, user string) (*fetched, error) {
	live := o.status.Live
	if live == nil || live.Digest == u.module.digest || live.Image == "" || u.direct {
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
		return nil, notFetched("NotFound", fmt.Errorf("%s has another digest than the live module, %s, from which the wanted one differs", live.Image, live.Digest), false)
	}
	return u.module, nil
}

// rolledBack reports whether a record says that of a module.
func rolledBack(record, digest string) bool {
	var e struct {
		Failed []struct {
			Digest string `json:"digest"`
		} `json:"failed"`
	}
	if json.Unmarshal([]byte(record), &e) != nil {
		return false
	}
	for _, f := range e.Failed {
		if f.Digest == digest {
			return true
		}
	}
	return false
}
