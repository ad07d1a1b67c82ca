package host

import (
	"context"
	"slices"
	"time"
)

// keepIdle keeps an instance for the next run, but not longer than Config.KeepIdle.
// False says that the revision is over.
func (g *revision) keepIdle(in *instance) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining.Load() {
		return false
	}
	in.idleSince = time.Now().UnixNano()
	g.idle = append(g.idle, in)
	if g.expiry == nil && g.cfg.KeepIdle > 0 {
		g.expiry = time.AfterFunc(g.cfg.KeepIdle, g.expire)
	}
	return true
}

// expire closes the instances that have been idle too long: a module that has
// nothing to do gives its memory back.
func (g *revision) expire() {
	if !g.retain() {
		return
	}
	defer g.release()
	for _, in := range g.takeExpired(time.Now().Add(-g.cfg.KeepIdle).UnixNano()) {
		in.close(context.Background())
	}
	g.dropUnused()
}

// dropUnused drops the image of a revision that has no instances, and what of its code
// is in memory.
func (g *revision) dropUnused() {
	g.mu.Lock()
	unused := len(g.all) == 0
	g.mu.Unlock()
	if unused {
		g.images.drop()
		g.code.rest()
	}
}

// takeExpired takes the instances that have been idle since then or longer, and
// sets the timer for the others.
func (g *revision) takeExpired(since int64) []*instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for n < len(g.idle) && g.idle[n].idleSince <= since {
		n++
	}
	expired := slices.Clone(g.idle[:n])
	g.idle = slices.Delete(g.idle, 0, n)
	g.expiry = nil
	if len(g.idle) > 0 {
		g.expiry = time.AfterFunc(time.Duration(g.idle[0].idleSince-since), g.expire)
	}
	return expired
}

// stopExpiry stops the timer of a revision that has no idle instances any longer.
func (g *revision) stopExpiry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.expiry != nil {
		g.expiry.Stop()
		g.expiry = nil
	}
}
