// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"log/slog"
	"sync"
	"time"
)

// Rate limits of a controller's log: the number of lines of each message in a burst, and per second.
const (
	logBurst = 500
	logRate  = 100
)

// maxMessages is the maximum number of messages with their own limit, because guests can choose texts too. All others share one limit.
const maxMessages = 256

// limiter drops lines of a message that comes too often, and counts them. It is safe for concurrent use.
type limiter struct {
	burst, rate float64 // of each message: lines, and lines a second

	mu      sync.Mutex
	buckets map[message]*bucket // guarded by mu
	total   uint64              // lines dropped so far; guarded by mu
}

// message is the key by which lines are limited.
type message struct {
	level slog.Level
	text  string
}

// bucket is the token bucket of a message.
type bucket struct {
	tokens  float64
	at      time.Time
	dropped uint64 // since the last line that passed
}

// allow reports whether a line may pass and, if so, how many lines of its message were dropped before it.
func (l *limiter) allow(now time.Time, level slog.Level, text string) (pass bool, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(now, message{level, text})
	if l.exceeds(b, now) {
		return false, 0
	}
	b.tokens--
	dropped, b.dropped = b.dropped, 0
	return true, dropped
}

// reported returns how many lines of a message were dropped since the last one that was written, and begins to count anew.
func (l *limiter) reported(level slog.Level, text string) (dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[message{level, text}]; b != nil {
		dropped, b.dropped = b.dropped, 0
	}
	return dropped
}

// limited reports whether allow would drop a line now, and if so counts it.
func (l *limiter) limited(now time.Time, level slog.Level, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.exceeds(l.bucket(now, message{level, text}), now)
}

// exceeds reports whether a line exceeds the limit, and if so counts it. The caller must hold mu.
func (l *limiter) exceeds(b *bucket, now time.Time) bool {
	if since := now.Sub(b.at); since > 0 {
		b.tokens = min(l.burst, b.tokens+since.Seconds()*l.rate)
		b.at = now
	}
	if b.tokens >= 1 {
		return false
	}
	b.dropped++
	l.total++
	return true
}

// bucket returns the bucket of a message. The caller must hold mu.
func (l *limiter) bucket(now time.Time, m message) *bucket {
	if b := l.buckets[m]; b != nil {
		return b
	}
	if l.buckets == nil {
		l.buckets = map[message]*bucket{}
	}
	if len(l.buckets) >= maxMessages {
		l.forget(now)
	}
	if len(l.buckets) >= maxMessages {
		m = message{text: "\x00others"}
		if b := l.buckets[m]; b != nil {
			return b
		}
	}
	b := &bucket{tokens: l.burst, at: now}
	l.buckets[m] = b
	return b
}

// forget removes the buckets that are full, which are equivalent to new ones. The caller must hold mu.
func (l *limiter) forget(now time.Time) {
	for m, b := range l.buckets {
		if b.dropped == 0 && b.tokens+now.Sub(b.at).Seconds()*l.rate >= l.burst {
			delete(l.buckets, m)
		}
	}
}

// dropped returns the number of lines dropped so far.
func (l *limiter) dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
