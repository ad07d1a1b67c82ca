// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// The times of client-go's own reflector. Its back-off cannot depend on the kind of error, and one of its waits ignores the context.
// Therefore the reflector is configured to wait one millisecond, and this back-off waits before each request instead.
const (
	backoffFirst = 800 * time.Millisecond
	backoffCap   = 30 * time.Second
	backoffReset = 2 * time.Minute
	// missingCap bounds the wait for a missing resource or permission, because a user who has just applied it is waiting. With jitter it is
	// 5 s.
	missingCap = 2500 * time.Millisecond
	// refusedFirst and refusedCap are the delays of a watch that exceeds the bounds of its tenant: each attempt reads objects in vain.
	refusedFirst = 5 * time.Second
	refusedCap   = time.Minute
	// longestAsked bounds the delay that the API server may request (Retry-After), so that a watch is never silent for longer than
	// State.Stalled allows.
	longestAsked = 2 * time.Minute
	// shortWatch is the minimum duration of a watch that does not count as failed.
	shortWatch = time.Second
	// healthyWatch is how long a watch must last to show that the previous outage is over; the next one then starts from Backoff.First.
	healthyWatch = 10 * time.Second
	// retryWithin is the time over which Set.Retry spreads the requests of all watches.
	retryWithin = time.Second
)

// maxBackoff bounds Backoff.Max: with jitter, the delay is within what State.Stalled allows.
const maxBackoff = time.Minute

// Backoff is the delay between failed requests of a watch, like kube-rs's trigger_backoff. It is First, and doubles with each failure up to
// Max, which is at most a minute; a random part of up to the same length is added. A field that is 0 has its default, 0.8 s or 30 s.
type Backoff struct{ First, Max time.Duration }

// Check returns an error if the values are not possible.
func (b Backoff) Check() error {
	b.setDefaults()
	if b.First < 0 || b.Max < b.First || b.Max > maxBackoff {
		return fmt.Errorf("back-off of watches: %v to %v: want 0 < First <= Max <= %v", b.First, b.Max, maxBackoff)
	}
	return nil
}

func (b *Backoff) setDefaults() {
	b.First = cmp.Or(b.First, min(backoffFirst, cmp.Or(b.Max, backoffFirst)))
	b.Max = cmp.Or(b.Max, max(backoffCap, b.First))
}

// backoff delays the request after a failed one. Each watch has its own (rule 13).
type backoff struct {
	cfg     Backoff
	retries func() <-chan struct{} // see Set.Retry

	mu      sync.Mutex
	failing wait.DelayFunc // guarded by mu
	missing wait.DelayFunc // guarded by mu; for Denied and Absent
	refused wait.DelayFunc // guarded by mu; for Refused
	last    *failure       // guarded by mu; nil if the next request need not wait
	expired bool           // guarded by mu; the last failure was an expired version
}

type failure struct {
	at    time.Time
	phase Phase // that results
	// streaming means that a request for a streaming list failed. The reflector falls back to a plain list, which is part of the same
	// attempt and need not wait.
	streaming bool
	// atLeast is the delay that the API server requested (Retry-After).
	atLeast time.Duration
}

func newBackoff(cfg Backoff, retries func() <-chan struct{}) *backoff {
	cfg.setDefaults()
	b := &backoff{cfg: cfg, retries: retries}
	b.reset()
	return b
}

// reset makes the next delays start from Backoff.First.
func (b *backoff) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restart()
}

// restart implements reset. The caller must hold mu.
func (b *backoff) restart() {
	delay := func(first, longest time.Duration) wait.DelayFunc {
		return wait.Backoff{Duration: first, Cap: longest, Factor: 2, Jitter: 1, Steps: 100}.
			DelayWithReset(clock.RealClock{}, backoffReset)
	}
	b.failing, b.missing = delay(b.cfg.First, b.cfg.Max), delay(b.cfg.First, min(max(missingCap, b.cfg.First), b.cfg.Max))
	b.refused = delay(refusedFirst, refusedCap)
}

// failed records that a request has failed with err. The first time that an API server reports an expired version, it is reachable again,
// with new caches after an outage: the outage is over.
func (b *backoff) failed(err error, phase Phase, streaming bool) {
	f := &failure{at: time.Now(), phase: phase, streaming: streaming && phase != Refused}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		f.atLeast = min(time.Duration(seconds)*time.Second, longestAsked)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if over := isExpired(err); over != b.expired {
		b.expired = over
		if over {
			b.restart()
		}
	}
	b.last = f
}

// take returns how long the next request must wait, and clears the failure.
func (b *backoff) take(list bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.last
	b.last = nil
	if f == nil || f.streaming && list {
		return 0
	}
	delay := b.failing
	switch f.phase {
	case Denied, Absent:
		delay = b.missing
	case Refused:
		delay = b.refused
	case Syncing, Ready, Failing:
	}
	return time.Until(f.at.Add(max(delay(), f.atLeast)))
}

// wait waits before a request. If ctx ends first, it returns the error of ctx.
func (b *backoff) wait(ctx context.Context, list bool) error {
	d := b.take(list)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-b.retries():
		b.reset()
		pause(ctx, min(rand.N(retryWithin), d))
	}
	return ctx.Err()
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
