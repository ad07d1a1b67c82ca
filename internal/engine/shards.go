// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// member returns the member that shares the objects with other replicas, or nil if this
// replica runs all of them.
func (c *Controller) member() *shard.Member {
	if c.opts.Unshared {
		return nil
	}
	return c.shared.Member
}

// Shared reports whether each replica runs a part of the controller's objects.
func (c *Controller) Shared() bool { return c.member() != nil }

// share takes part in the sharing of objects between replicas until ctx ends.
func (c *Controller) share(ctx context.Context) {
	split, err := c.shared.Member.Split(ctx, c.name, c.split.Field())
	if err != nil {
		return // ctx has ended
	}
	if split != c.split.Field() {
		level := slog.LevelInfo
		if c.kind.Watch.Deletes && c.moved == nil { // the last runs of a deleted object need its owner, which is unknown once the object is gone
			level = slog.LevelError
		}
		c.log.Log(ctx, level, "the objects stay split by the field that the first replica chose; to change it, stop all replicas and delete the Lease whose name ends with -shards",
			"controller", c.name, "by", split, "wanted", c.split.Field(), "because", c.split.Why)
	}
	c.log.Info("sharing the objects with other replicas", "controller", c.name, "replica", c.shared.Member.View().ID, "by", split)
	c.Runtime.SplitBy(split)
	var part shard.Participant = c.Runtime
	if c.moved != nil {
		part = mover{c.Runtime, c.shared.Member, c.moved}
	}
	wanted := c.follow(ctx, shard.Wanted{}) // a pause applies before the first run
	leave := c.shared.Member.Join(ctx, part)
	defer leave()
	for {
		select {
		case <-time.After(followEvery):
			wanted = c.follow(ctx, wanted)
		case <-ctx.Done():
			return
		}
	}
}

// followEvery is the interval at which a controller looks for commands to all replicas.
const followEvery = time.Second

// follow carries out what commands have asked of all replicas since done. It returns what is done now.
func (c *Controller) follow(ctx context.Context, done shard.Wanted) shard.Wanted {
	w := c.shared.Member.Wanted(c.name)
	if w.Generation <= done.Generation {
		return done
	}
	if w.Paused != done.Paused {
		c.Pause(w.Paused)
	}
	if w.Trigger > done.Generation {
		n, _ := c.Trigger(ctx, nil, w.Force > done.Generation) // no object is named, so it cannot fail
		c.log.Info("triggered all objects, as all replicas do", "triggered", n, "controller", c.name)
	}
	c.followed.Store(w.Generation)
	return w
}

// Followed returns the generation of the commands to all replicas that this one has carried out.
func (c *Controller) Followed() uint64 { return c.followed.Load() }

// mover is the participant of a native reconciler that does work for its objects outside of
// its runs.
type mover struct {
	*controller.Controller

	member *shard.Member
	moved  func(has func(uid string) bool)
}

// Open implements shard.Participant. It ignores the handover: the host did not see the
// writes that the previous owner sent past it.
func (m mover) Open(ctx context.Context, slot int, gained shard.Gained, _ *shard.Handover) error {
	return m.Controller.Open(ctx, slot, gained, nil)
}

// Close implements shard.Participant. It waits for the reconciler's work on the slot to
// end, even while the process stops: only then may another replica begin.
func (m mover) Close(ctx context.Context, slot int) shard.Handover {
	m.Controller.Close(ctx, slot)
	n := m.member.Slots()
	m.moved(func(uid string) bool { return slots.Of(uid, n) == slot })
	return shard.Handover{}
}
