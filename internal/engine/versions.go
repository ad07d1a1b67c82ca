// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// versionsEvery is the interval at which the loop looks for watches of a version that is no longer
// served.
const versionsEvery = 30 * time.Second

// checkVersions restarts the controller if a watch is absent because the API server now serves its
// kind in another version, and neither the options nor the manifest name the version. It asks the API
// server only while a watch is absent.
func (l *loop) checkVersions() {
	c := l.current
	if l.run == nil || !slices.ContainsFunc(c.Runtime.Stats().Watches, func(w controller.WatchState) bool { return w.State.Phase == watcher.Absent }) {
		return
	}
	before := c.native
	if before == nil {
		before = c.rollout.Plan()
	}
	ctx, cancel := context.WithTimeout(l.run, versionsEvery) // until the next look
	l.wg.Go(func() {
		defer cancel()
		watched := append([]plan.Watched{c.kind}, before.Related...)
		now, err := c.resolveAgain(ctx, before)
		if err != nil || ctx.Err() != nil {
			return // the watch goes on waiting
		}
		if was, is, ok := otherVersion(watched, now); ok {
			c.log.Warn("the API server serves another version of a watched kind; restarting the controller", "before", was.String(), "now", is.String(), "controller", c.name)
			l.Restart()
		}
	})
}

// resolveAgain returns the kinds that a plan watches, as the API server serves them now. It does not
// wait for missing kinds.
func (c *Controller) resolveAgain(ctx context.Context, p *plan.Plan) ([]plan.Watched, error) {
	digest := ""
	if c.Module != nil {
		digest = c.Module.Digest()
	}
	c.shared.Resolver.Expire()
	planner := *c.planner
	planner.Finder, planner.Log = &plan.Guess{Resolver: c.shared.Resolver}, slog.New(slog.DiscardHandler)
	now, err := planner.Of(digest)
	if err != nil {
		return nil, err
	}
	kind, err := now.Kind(ctx, p.Manifest)
	if err != nil {
		return nil, err
	}
	next, err := now.Plan(ctx, kind, p.Manifest)
	if err != nil {
		return nil, err
	}
	return append([]plan.Watched{kind}, next.Related...), nil
}

// otherVersion returns the first kind that was watched in a version that is not among those of now,
// with its counterpart there.
func otherVersion(before, now []plan.Watched) (was, is plan.Watched, ok bool) {
	for _, was := range before {
		if slices.ContainsFunc(now, func(k plan.Watched) bool { return k.GVR() == was.GVR() }) {
			continue
		}
		if i := slices.IndexFunc(now, func(k plan.Watched) bool { return k.GVR().GroupResource() == was.GVR().GroupResource() }); i >= 0 {
			return was, now[i], true
		}
	}
	return was, is, false
}
