package host

import (
	"context"
	"slices"
	"time"
)

// restAfter is how long nothing runs in a revision before it rests: it keeps one
// instance and none of its code in memory. To make instances of an image, and to read
// code from its file again, takes a millisecond.
const restAfter = 10 * time.Second

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
	switch {
	case g.cfg.KeepIdle < 0:
	case g.expiry == nil:
		g.expiry = time.AfterFunc(min(restAfter, g.cfg.KeepIdle), g.expire)
	case g.rests:
		g.expiry.Reset(min(restAfter, g.cfg.KeepIdle))
	}
	g.rests = false
	return true
}

// expire closes the instances that have been idle too long: a module that has
// nothing to do gives its memory back.
func (g *revision) expire() {
	if !g.retain() {
		return
	}
	defer g.release()
	expired, rests := g.takeExpired(time.Now().UnixNano(), g.hasImage())
	for _, in := range expired {
		in.close(context.Background())
	}
	if rests {
		g.code.rest()
	}
	g.dropUnused()
}

// dropUnused drops the image of a revision that has no instances, and what of its code
// is in memory.
func (g *revision) dropUnused() {
	if g.instances() == 0 {
		g.images.drop()
		g.code.rest()
	}
}

// takeExpired takes the instances that have been idle too long, and sets the timer for
// the others. Rests says that nothing has run for a while.
func (g *revision) takeExpired(now int64, imaged bool) (expired []*instance, rests bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for n < len(g.idle) && now-g.idle[n].idleSince >= int64(g.cfg.KeepIdle) {
		n++
	}
	expired = slices.Clone(g.idle[:n])
	g.idle = slices.Delete(g.idle, 0, n)
	g.expiry = nil
	if len(g.idle) == 0 {
		return expired, false
	}
	next := g.idle[0].idleSince + int64(g.cfg.KeepIdle)
	quiet := now - g.idle[len(g.idle)-1].idleSince // ends with each run
	switch {
	case len(g.all) > len(g.idle)+len(expired):
		next = min(next, now+int64(restAfter))
	case quiet < int64(restAfter):
		next = min(next, now-quiet+int64(restAfter))
	case !g.rests:
		g.rests, rests = true, true
		if imaged {
			expired = append(expired, g.keepOne()...)
			next = g.idle[0].idleSince + int64(g.cfg.KeepIdle)
		}
	}
	g.expiry = time.AfterFunc(time.Duration(next-now), g.expire)
	return expired, rests
}

// keepOne takes all idle instances but one, which shares memory with the image if any
// does. The lock is held.
func (g *revision) keepOne() []*instance {
	i := max(slices.IndexFunc(g.idle, func(in *instance) bool { return in.imaged }), 0)
	others := slices.Delete(slices.Clone(g.idle), i, i+1)
	g.idle = g.idle[i : i+1 : i+1]
	return others
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
