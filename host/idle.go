// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/instance"
)

// restAfter is how long nothing runs in a revision before it rests: then it has one instance,
// and none of its code in memory. To make instances from an image, and to read code from its
// file again, takes a millisecond.
const restAfter = 10 * time.Second

// keepIdle keeps an instance for the next run, but not longer than Keep.Idle. It returns
// false if the revision is over.
func (r *revision) keepIdle(in *instance.Instance) bool {
	p := &r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.spec.Draining.Load() {
		return false
	}
	in.IdleSince = time.Now().UnixNano()
	p.idle = append(p.idle, in)
	switch {
	case r.cfg.Keep.Idle < 0:
	case p.expiry == nil:
		p.expiry = time.AfterFunc(min(restAfter, r.cfg.Keep.Idle), r.expire)
	case p.rests:
		p.expiry.Reset(min(restAfter, r.cfg.Keep.Idle))
	}
	p.rests = false
	return true
}

// expire closes the instances that have been idle too long: a module that has nothing to do
// gives its memory back.
func (r *revision) expire() {
	if !r.Retain() {
		return
	}
	defer r.Release()
	expired, rests := r.takeExpired(time.Now().UnixNano(), r.maker.HasImage(), r.spec.All.Len())
	for _, in := range expired {
		in.Close(context.Background())
	}
	if rests {
		r.program.Rest()
	}
	r.releaseUnused()
}

// releaseUnused releases the image of a revision that has no instances, and the memory of
// its code.
func (r *revision) releaseUnused() {
	if r.spec.All.Len() == 0 {
		r.maker.ReleaseImage()
		r.program.Rest()
	}
}

// takeExpired takes the instances that have been idle too long, and sets the timer for the
// others. all is the number of instances, those in use included. rests reports that nothing
// has run for a while.
func (r *revision) takeExpired(now int64, imaged bool, all int) (expired []*instance.Instance, rests bool) {
	p, keep := &r.pool, int64(r.cfg.Keep.Idle)
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && now-p.idle[n].IdleSince >= keep {
		n++
	}
	expired = slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.expiry = nil
	if len(p.idle) == 0 {
		return expired, false
	}
	next := p.idle[0].IdleSince + keep
	quiet := now - p.idle[len(p.idle)-1].IdleSince // ends with each run
	switch {
	case all > len(p.idle)+len(expired):
		next = min(next, now+int64(restAfter))
	case quiet < int64(restAfter):
		next = min(next, now-quiet+int64(restAfter))
	case !p.rests:
		p.rests, rests = true, true
		if imaged {
			expired = append(expired, p.keepOne()...)
			next = p.idle[0].IdleSince + keep
		}
	}
	p.expiry = time.AfterFunc(time.Duration(next-now), r.expire)
	return expired, rests
}

// keepOne takes all idle instances but one, which shares memory with the image if any does;
// mu is held.
func (p *pool) keepOne() []*instance.Instance {
	i := max(slices.IndexFunc(p.idle, func(in *instance.Instance) bool { return in.Imaged }), 0)
	others := slices.Delete(slices.Clone(p.idle), i, i+1)
	p.idle = p.idle[i : i+1 : i+1]
	return others
}

// stopExpiry stops the timer of a pool that has no more idle instances.
func (p *pool) stopExpiry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiry != nil {
		p.expiry.Stop()
		p.expiry = nil
	}
}
