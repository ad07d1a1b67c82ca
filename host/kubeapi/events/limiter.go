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

	// The limit of each namespace, with Config.PerNamespace.
	namespaceBurst     = 300
	namespacePerSecond = 1.0

	// maxObjects is the maximum number of distinguished objects, and of different events. The least
	// recently used ones are forgotten.
	maxObjects = 4096
)

// limiter limits the events about each object, and about the objects of each namespace. An event that differs from an earlier one only in
// its note is free, because client-go adds it to the series of that one.
type limiter struct {
	perNamespace bool
	seen         *lru.Cache // of Event without its note; has a lock of its own
	mu           sync.Mutex
	buckets      *lru.Cache // of flowcontrol.PassiveRateLimiter by corev1.ObjectReference; look-up and insertion are guarded by mu
}

func newLimiter(perNamespace bool) *limiter {
	return &limiter{perNamespace: perNamespace, seen: lru.New(maxObjects), buckets: lru.New(maxObjects)}
}

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
	if !l.bucket(e.Regarding, perSecond, burst).TryAccept() {
		return false
	}
	if l.perNamespace && !l.bucket(corev1.ObjectReference{Namespace: e.Regarding.Namespace}, namespacePerSecond, namespaceBurst).TryAccept() {
		return false
	}
	l.seen.Add(key, nil)
	return true
}

// bucket returns the bucket of an object, or of a namespace, which is a reference without a name.
func (l *limiter) bucket(object corev1.ObjectReference, qps float32, burst int) flowcontrol.PassiveRateLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets.Get(object); ok {
		return b.(flowcontrol.PassiveRateLimiter)
	}
	b := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(qps, burst, clock.RealClock{})
	l.buckets.Add(object, b)
	return b
}
