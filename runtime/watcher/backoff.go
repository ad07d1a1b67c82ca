package watcher

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// The times of client-go's own reflector. Its back-off cannot be chosen by the
// kind of error, and one of its waits does not end with the context, so the
// reflector is told to wait a millisecond and this back-off waits in front of
// each request.
const (
	backoffFirst = 800 * time.Millisecond
	backoffCap   = 30 * time.Second
	backoffReset = 2 * time.Minute
	// missingCap bounds the wait for a resource or a right that is missing: a user
	// has just applied it and is waiting. With its jitter it is 5 s.
	missingCap = 2500 * time.Millisecond
	// longestAsked bounds what the API server may ask for (Retry-After), so that a
	// watch is never silent for longer than State.Stalled allows.
	longestAsked = 2 * time.Minute
	// shortWatch is how long a watch must live not to count as failed.
	shortWatch = time.Second
	// healthyWatch is how long a watch must live to show that the outage before
	// it is over, so that the next one starts from backoffFirst.
	healthyWatch = 10 * time.Second
)

// backoff delays the request after a failed one. Each watch has its own (rule
// 13).
type backoff struct {
	mu      sync.Mutex
	failing wait.DelayFunc // guarded by mu
	missing wait.DelayFunc // guarded by mu; for Denied and Absent
	last    *failure       // guarded by mu; nil where the next request need not wait
	expired bool           // the last failure was of a version that is too old; guarded by mu
}

type failure struct {
	at      time.Time
	missing bool
	// streaming: a request to stream the list failed. The reflector falls back
	// to a plain list, which belongs to the same attempt and need not wait.
	streaming bool
	// atLeast is what the API server asks for (Retry-After).
	atLeast time.Duration
}

func newBackoff() *backoff {
	b := &backoff{}
	b.reset()
	return b
}

// reset makes the next delays start from backoffFirst.
func (b *backoff) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restart()
}

// restart is reset. The caller holds mu.
func (b *backoff) restart() {
	delay := func(longest time.Duration) wait.DelayFunc {
		return wait.Backoff{Duration: backoffFirst, Cap: longest, Factor: 2, Jitter: 1, Steps: 100}.
			DelayWithReset(clock.RealClock{}, backoffReset)
	}
	b.failing, b.missing = delay(backoffCap), delay(missingCap)
}

// failed notes that a request has failed with err. An API server that says for the
// first time that a version is too old answers again: with new caches after an
// outage, which is over.
func (b *backoff) failed(err error, missing, streaming bool) {
	f := &failure{at: time.Now(), missing: missing, streaming: streaming}
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

// take returns how long the next request has to wait, and forgets the failure.
func (b *backoff) take(list bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.last
	b.last = nil
	if f == nil || f.streaming && list {
		return 0
	}
	delay := b.failing
	if f.missing {
		delay = b.missing
	}
	return time.Until(f.at.Add(max(delay(), f.atLeast)))
}

// wait waits before a request, or until ctx ends, whose error it then returns.
func (b *backoff) wait(ctx context.Context, list bool) error {
	if d := b.take(list); d > 0 && pause(ctx, d) {
		return nil
	}
	return ctx.Err()
}

// pause waits, and reports whether ctx lasts.
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
