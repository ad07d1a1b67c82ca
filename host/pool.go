package host

import (
	"context"
	"slices"
)

// slots bound how many instances of a module are in use at once: one token
// each. Reconciles and hooks have slots of their own, so that neither waits for
// the other.
type slots chan struct{}

// hookSlots is how many instances map, filter and configure may use at once.
const hookSlots = 1

// take waits for a free slot.
func (s *shared) take(ctx context.Context, free slots) error {
	select {
	case free <- struct{}{}:
		return nil
	default:
	}
	select {
	case free <- struct{}{}:
		return nil
	case <-s.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// get waits for a free slot and returns an instance of a revision, with a
// reference on that: the one given, or where it is nil the one that is current
// then. put gives all three back.
func (m *Module) get(ctx context.Context, free slots, g *revision) (*revision, *instance, error) {
	if err := m.shared.take(ctx, free); err != nil {
		return nil, nil, err
	}
	if g == nil {
		g = m.retain()
	} else if g.draining.Load() || !g.retain() {
		g = nil
	}
	if g == nil {
		<-free
		return nil, nil, ErrClosed
	}
	in, err := g.ready(ctx)
	if err != nil {
		g.release()
		<-free
		return nil, nil, &StartError{g.number, err}
	}
	return g, in, nil
}

// put undoes get. The instance may be nil or closed.
func (g *revision) put(in *instance, taken slots) {
	g.park(in)
	<-taken
	g.release()
}

// ready returns an instance with the current settings.
func (g *revision) ready(ctx context.Context) (*instance, error) {
	current := g.settings.Load()
	in := g.popIdle()
	for ; in != nil && in.remote != nil && in.remote.proc.Ended() != nil; in = g.popIdle() {
		in.close(ctx)
	}
	if in == nil {
		return g.another(ctx, current)
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
		g.log.Warn("replacing an instance that refused the new settings; configure must not depend on earlier calls", "error", err)
	}
	return g.another(ctx, current)
}

// warm makes instances until there are so many: a revision that takes over gets as many
// as the one before has, so that its first runs do not wait for them.
func (g *revision) warm(ctx context.Context, n int) {
	var made []*instance
	for g.instances() < n {
		in, err := g.newInstance(ctx, g.settings.Load())
		if err != nil {
			break // a run that needs one says why
		}
		made = append(made, in)
	}
	for _, in := range made {
		g.park(in)
	}
}

// instances is how many are not closed.
func (g *revision) instances() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all)
}

// register notes a new instance, unless nothing of the revision may run any
// longer.
func (g *revision) register(in *instance) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return errReplaced(g.number)
	}
	g.all[in] = struct{}{}
	return nil
}

func (g *revision) unregister(in *instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, in)
}

// popIdle takes the instance that was used last, or nil.
func (g *revision) popIdle() *instance {
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
func (g *revision) popOldest() *instance {
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
func (g *revision) idleSince() (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.idle) == 0 {
		return 0, false
	}
	return g.idle[0].idleSince, true
}

// park keeps an instance for the next run, or closes it where there is none. It
// may be nil or closed.
func (g *revision) park(in *instance) {
	if in == nil || in.closed {
		return
	}
	if why := in.worn(); why != "" {
		g.shared.hits.add(why)
		g.shared.recycled.add(string(why))
		in.close(context.Background())
	} else if !g.keepIdle(in) {
		in.close(context.Background())
	}
}
