package host

import (
	"context"
	"slices"
	"time"
)

// slots bound how many instances of a generation are in use at once: one token
// each. Reconciles and hooks have slots of their own, so that neither waits for
// the other.
type slots chan struct{}

// hookSlots is how many instances map, filter and configure may use at once.
const hookSlots = 1

// get waits for a free slot and returns an idle instance or a new one, which
// has the current settings.
func (g *generation) get(ctx context.Context, s slots) (*instance, error) {
	if err := g.takeSlot(ctx, s); err != nil {
		return nil, err
	}
	in, err := g.ready(ctx)
	if err != nil {
		<-s
	}
	return in, err
}

// takeSlot waits for a free slot.
func (g *generation) takeSlot(ctx context.Context, s slots) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-g.retired:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ready returns an instance with the current settings.
func (g *generation) ready(ctx context.Context) (*instance, error) {
	current := g.settings.Load()
	in := g.popIdle()
	if in == nil {
		return g.newInstance(ctx, current)
	}
	if in.settings == current {
		return in, nil
	}
	err := in.configure(ctx, current)
	if err == nil {
		return in, nil
	}
	// A fresh one has accepted these settings before, so it may do so again.
	in.close(ctx)
	if ctx.Err() == nil {
		g.log.Warn("an instance did not take the new settings and is replaced; configure must not depend on earlier calls", "error", err)
	}
	return g.newInstance(ctx, current)
}

// popIdle takes the instance that was used last, or nil.
func (g *generation) popIdle() *instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.idle)
	if n == 0 {
		return nil
	}
	in := g.idle[n-1]
	g.idle[n-1] = nil
	g.idle = g.idle[:n-1]
	return in
}

// popOldest takes the instance that has been idle longest, or nil.
func (g *generation) popOldest() *instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.idle) == 0 {
		return nil
	}
	in := g.idle[0]
	g.idle = slices.Delete(g.idle, 0, 1)
	return in
}

// idleSince returns since when an instance has been idle, in nanoseconds, and
// false where none is.
func (g *generation) idleSince() (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.idle) == 0 {
		return 0, false
	}
	return g.idle[0].idleSince, true
}

// put takes an instance back, unless it is nil or closed, and frees its slot.
func (g *generation) put(in *instance, s slots) {
	if in != nil && !in.closed {
		in.idleSince = time.Now().UnixNano()
		g.mu.Lock()
		g.idle = append(g.idle, in)
		g.mu.Unlock()
	}
	<-s
}
