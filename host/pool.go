// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
)

// slots bound how many instances of a module are in use at once: one token each. Reconciles
// and hooks have slots of their own, so that neither waits for the other.
type slots chan struct{}

// hookSlots is how many instances map, filter and configure may use at once.
const hookSlots = 1

// admissionSlots is how many instances validate, default and convert may use at once. Requests
// to the API server wait for them.
const admissionSlots = 4

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

// pool has the idle instances of a revision.
type pool struct {
	mu   sync.Mutex
	idle []*instance.Instance // guarded by mu; the last one used is the last
	// expiry closes idle instances in time; guarded by mu; nil if none is idle.
	expiry *time.Timer
	rests  bool // nothing has run since expire has noticed that; guarded by mu
}

// get waits for a free slot and returns an instance of a revision, with a reference on that:
// the given one, or the current one if it is nil. put gives all three back.
func (m *Module) get(ctx context.Context, free slots, rev *revision) (*revision, *instance.Instance, error) {
	if err := m.shared.take(ctx, free); err != nil {
		return nil, nil, err
	}
	if rev == nil {
		rev = m.retain()
	} else if rev.spec.Draining.Load() || !rev.Retain() {
		rev = nil
	}
	if rev == nil {
		<-free
		return nil, nil, ErrClosed
	}
	in, err := rev.ready(ctx)
	if err != nil {
		rev.Release()
		<-free
		return nil, nil, &StartError{rev.spec.Number, err}
	}
	return rev, in, nil
}

// put undoes get. The instance may be nil or closed.
func (r *revision) put(in *instance.Instance, taken slots) {
	r.park(in)
	<-taken
	r.Release()
}

// newInstance makes an instance that is ready for any entry.
func (r *revision) newInstance(ctx context.Context, s *operation.Settings) (*instance.Instance, error) {
	current := s == r.settings.Load()
	in, err := r.maker.New(ctx, s, current)
	if current { // a refusal of other settings does not count
		r.health.note(ctx, err)
	}
	return in, err
}

// ready returns an instance with the current settings.
func (r *revision) ready(ctx context.Context) (*instance.Instance, error) {
	current := r.settings.Load()
	in := r.pool.popNewest()
	for ; in != nil && !in.Alive(); in = r.pool.popNewest() {
		in.Close(ctx)
	}
	if in == nil {
		return r.another(ctx, current)
	}
	if in.Desk.Settings == current {
		return in, nil
	}
	err := in.Configure(ctx, current)
	if err == nil {
		return in, nil
	}
	// A new instance has accepted these settings before, so it may do so again.
	in.Close(ctx)
	if ctx.Err() == nil {
		r.spec.Log.Warn("replacing an instance that refused the new settings; configure must not depend on earlier calls", "error", err)
	}
	return r.another(ctx, current)
}

// warm makes instances until there are n: a revision that takes over gets as many as its
// predecessor has, so that its first runs do not wait for them.
func (r *revision) warm(ctx context.Context, n int) {
	var made []*instance.Instance
	for r.spec.All.Len() < n {
		in, err := r.newInstance(ctx, r.settings.Load())
		if err != nil {
			break // a run that needs one returns the error
		}
		made = append(made, in)
	}
	for _, in := range made {
		r.park(in)
	}
}

// park keeps an instance for the next run, or closes it if there is none. It may be nil or
// closed.
func (r *revision) park(in *instance.Instance) {
	if in == nil || in.Closed() {
		return
	}
	if reason := in.Worn(); reason != "" {
		r.shared.use.Hits.Add(reason)
		r.shared.use.Recycled.Add(string(reason))
		in.Close(context.Background())
	} else if !r.keepIdle(in) {
		in.Close(context.Background())
	}
}

// popNewest takes the instance that was used last, or nil.
func (p *pool) popNewest() *instance.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	in := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return in
}

// popOldest takes the instance that has been idle longest, or nil.
func (p *pool) popOldest() *instance.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	in := p.idle[0]
	p.idle = slices.Delete(p.idle, 0, 1)
	return in
}

// IdleSince implements share.Pool.
func (r *revision) IdleSince() (int64, bool) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	if len(r.pool.idle) == 0 {
		return 0, false
	}
	return r.pool.idle[0].IdleSince, true
}

// CloseOldest implements share.Pool.
func (r *revision) CloseOldest() bool {
	in := r.pool.popOldest()
	if in == nil { // a run has taken it meanwhile
		return false
	}
	// The context is not the caller's, who may belong to another module.
	in.Close(context.Background())
	r.releaseUnused()
	return true
}

// Largest implements share.Pool.
func (r *revision) Largest() (int64, bool) { return r.spec.All.Largest() }

// Ending implements share.Pool.
func (r *revision) Ending() int64 { return r.spec.All.Ending() }

// InterruptLargest implements share.Pool.
func (r *revision) InterruptLargest() { r.spec.All.InterruptLargest() }
