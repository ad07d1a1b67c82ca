package engine

import (
	"context"
	"log/slog"
)

// share takes part in sharing the objects with other replicas, until ctx ends.
func (c *Controller) share(ctx context.Context) {
	split, err := c.shared.Member.Split(ctx, c.name, c.split.Field())
	if err != nil {
		return // ctx has ended
	}
	if split != c.split.Field() {
		level := slog.LevelInfo
		if c.kind.Watch.Deletes { // who has run an object that is gone is not known then
			level = slog.LevelError
		}
		c.log.Log(ctx, level, "the objects stay split by what the first replica has said; to change that, stop all replicas and delete the Lease whose name ends with -shards",
			"controller", c.name, "by", split, "wanted", c.split.Field(), "because", c.split.Why)
	}
	c.log.Info("sharing the objects with other replicas", "controller", c.name, "replica", c.shared.Member.View().ID, "by", split)
	c.Runtime.SplitBy(split)
	leave := c.shared.Member.Join(ctx, c.Runtime)
	<-ctx.Done()
	leave()
}
