// SPDX-License-Identifier: Apache-2.0

package events

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// The limit of each object: a number of events at once, and then one event per interval. It is that
// of client-go's spam filter for core events. Its recorder for events.k8s.io has none.
const (
	burst     = 25
	perSecond = 1.0 / 300

	// maxObjects is the maximum number of distinguished objects, and of different events. The least
	// recently used ones are forgotten.
	maxObjects = 4096
)

// limiter limits the events about each object. An event that differs from an earlier one only in
// its note is free, because client-go adds it to the series of that one.
type limiter struct {
	seen    *lru.Cache // of Event without its note; has a lock of its own
	mu      sync.Mutex
	buckets *lru.Cache // of flowcontrol.PassiveRateLimiter by corev1.ObjectReference; look-up and insertion are guarded by mu
}

func newLimiter() *limiter { return &limiter{seen: lru.New(maxObjects), buckets: lru.New(maxObjects)} }

// seriesKey has the common fields of the events in a series.
type seriesKey struct {
	kind, reason, action string
	regarding, related   corev1.ObjectReference
}

func (l *limiter) allows(e *Event) bool {
	key := seriesKey{kind: e.Type, reason: e.Reason, action: e.Action, regarding: e.Regarding}
	if e.Related != nil {
		key.related = *e.Related
	}
	if _, ok := l.seen.Get(key); ok {
		return true
	}
	if !l.bucket(e.Regarding).TryAccept() {
		return false
	}
	l.seen.Add(key, nil)
	return true
}

func (l *limiter) bucket(object corev1.ObjectReference) flowcontrol.PassiveRateLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets.Get(object); ok {
		return b.(flowcontrol.PassiveRateLimiter)
	}
	b := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(perSecond, burst, clock.RealClock{})
	l.buckets.Add(object, b)
	return b
}
