package logging

import (
	"log/slog"
	"sync"
	"time"
)

// Rate limits of a controller's log: of each message so many lines may come at
// once, and so many a second.
const (
	logBurst = 500
	logRate  = 100
	// maxMessages bounds how many messages are distinguished; guests choose texts
	// too. Those for which there is no room share one limit.
	maxMessages = 256
)

// limiter drops lines of a message that comes too often, and counts them. The
// zero value works. It is safe for concurrent use.
type limiter struct {
	mu      sync.Mutex
	buckets map[message]*bucket // guarded by mu
	total   uint64              // lines dropped so far; guarded by mu
}

// message tells lines apart.
type message struct {
	level slog.Level
	text  string
}

// bucket is how many lines of a message may come now.
type bucket struct {
	tokens  float64
	at      time.Time
	dropped uint64 // since the last line that passed
}

// allow reports whether a line may pass, and if so how many of its message were
// dropped before it.
func (l *limiter) allow(now time.Time, level slog.Level, text string) (pass bool, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(now, message{level, text})
	if l.drop(b, now) {
		return false, 0
	}
	b.tokens--
	dropped, b.dropped = b.dropped, 0
	return true, dropped
}

// drops reports whether allow would drop a line now, and counts it then.
func (l *limiter) drops(now time.Time, level slog.Level, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(l.bucket(now, message{level, text}), now)
}

// drop counts a line that there is no room for, and reports that. The caller holds
// mu.
func (l *limiter) drop(b *bucket, now time.Time) bool {
	if since := now.Sub(b.at); since > 0 {
		b.tokens = min(logBurst, b.tokens+since.Seconds()*logRate)
		b.at = now
	}
	if b.tokens >= 1 {
		return false
	}
	b.dropped++
	l.total++
	return true
}

// bucket returns that of a message. The caller holds mu.
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
	b := &bucket{tokens: logBurst, at: now}
	l.buckets[m] = b
	return b
}

// forget drops what is known of messages that may come as often as new ones.
// The caller holds mu.
func (l *limiter) forget(now time.Time) {
	for m, b := range l.buckets {
		if b.dropped == 0 && b.tokens+now.Sub(b.at).Seconds()*logRate >= logBurst {
			delete(l.buckets, m)
		}
	}
}

// dropped returns how many lines were dropped so far.
func (l *limiter) dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
