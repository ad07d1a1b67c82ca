// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// loadMemory is the time constant of the measured load: older measurements together have a weight of about a third.
const loadMemory = 30 * time.Second

// load measures the load of slots. It belongs to one goroutine.
type load struct {
	at     time.Time // of the last measurement
	before map[int]time.Duration
	rates  map[int]float64 // ms per second
}

// due reports whether to measure again.
func (l *load) due(now time.Time, every time.Duration) bool { return now.Sub(l.at) >= every }

// measure takes the total time spent on each slot so far, and returns the load, in ms per second.
func (l *load) measure(now time.Time, spent map[int]time.Duration) map[int]int {
	out, took := map[int]int{}, now.Sub(l.at).Seconds()
	weight := min(1, took/loadMemory.Seconds())
	rates := make(map[int]float64, len(spent))
	for slot, d := range spent {
		rates[slot] = l.rates[slot] * (1 - weight)
		if before, ok := l.before[slot]; ok && !l.at.IsZero() {
			rates[slot] += weight * float64(max(0, d-before).Milliseconds()) / took
		}
		if ms := int(rates[slot] + 0.5); ms > 0 {
			out[slot] = ms
		}
	}
	l.at, l.before, l.rates = now, spent, rates
	return out
}

// spent returns the total time spent on each slot, in all controllers.
func (m *Member) spent() map[int]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[int]time.Duration{}
	for _, p := range m.parts {
		p.Spent(func(slot int, d time.Duration) { out[slot] += d })
	}
	return out
}
