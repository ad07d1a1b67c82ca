package engine

import "context"

// share takes part in sharing the objects with other replicas, until ctx ends.
func (c *Controller) share(ctx context.Context) {
	split, err := c.shared.Member.Split(ctx, c.name, c.split)
	if err != nil {
		return // ctx has ended
	}
	c.log.Info("sharing the objects with other replicas", "controller", c.name, "replica", c.shared.Member.View().ID, "by", split)
	c.Runtime.SplitBy(split)
	leave := c.shared.Member.Join(ctx, c.Runtime)
	<-ctx.Done()
	leave()
}
