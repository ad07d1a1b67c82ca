package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// member returns what shares the objects with other replicas; nil where this one runs
// all of them.
func (c *Controller) member() *shard.Member {
	if c.opts.Whole {
		return nil
	}
	return c.shared.Member
}

// share takes part in sharing the objects with other replicas, until ctx ends.
func (c *Controller) share(ctx context.Context) {
	split, err := c.shared.Member.Split(ctx, c.name, c.split.Field())
	if err != nil {
		return // ctx has ended
	}
	if split != c.split.Field() {
		level := slog.LevelInfo
		if c.kind.Watch.Deletes && c.moved == nil { // whose an object was is not known once it is gone: nobody runs it
			level = slog.LevelError
		}
		c.log.Log(ctx, level, "the objects stay split by what the first replica has said; to change that, stop all replicas and delete the Lease whose name ends with -shards",
			"controller", c.name, "by", split, "wanted", c.split.Field(), "because", c.split.Why)
	}
	c.log.Info("sharing the objects with other replicas", "controller", c.name, "replica", c.shared.Member.View().ID, "by", split)
	c.Runtime.SplitBy(split)
	var part shard.Participant = c.Runtime
	if c.moved != nil {
		part = mover{c.Runtime, c.shared.Member, c.moved}
	}
	leave := c.shared.Member.Join(ctx, part)
	<-ctx.Done()
	leave()
}

// mover is the part of a native reconciler that does something for objects beside its
// runs.
type mover struct {
	*controller.Controller

	member *shard.Member
	moved  func(has func(uid string) bool)
}

// Open implements shard.Participant. What the owner before has written past the host is
// not known.
func (m mover) Open(ctx context.Context, slot int, since time.Time, _ *shard.Handover) error {
	return m.Controller.Open(ctx, slot, since, nil)
}

// Close implements shard.Participant. It waits for the end of what goes on, also while
// the process stops: only then may another replica begin.
func (m mover) Close(ctx context.Context, slot int) shard.Handover {
	m.Controller.Close(ctx, slot)
	n := m.member.Slots()
	m.moved(func(uid string) bool { return slots.Of(uid, n) == slot })
	return shard.Handover{}
}
