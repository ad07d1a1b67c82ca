// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// model implements the same as Scheduler with slice scans, and without regard for speed.
type model struct {
	now      time.Time // the last time passed in
	debounce scheduler.Debounce
	pending  []*pending // in the order in which they were last placed
	running  []run
	holds    map[string]time.Time // by key; expired ones are harmless
	passed   int                  // Normal items handed out in a row while Low was ready
	placed   int
}

// run is a running key in the model, with the message and priority of its run.
type run struct {
	key   string
	since time.Time
	msg   string
	prio  scheduler.Priority
}

// pending is the request of one key in the model.
type pending struct {
	key      string
	msg      string
	prio     scheduler.Priority
	rises    time.Time   // when a Normal request in a Low one is due; zero if there is none
	times    []time.Time // the explicit time
	triggers []time.Time // when the debounced requests came
	due      bool
	blocked  bool // due, but the key runs
	place    int  // position among those that are due and not blocked
	timed    int  // position among those that wait for the same time
}

// at returns when a request is due, ignoring a delay: a literal implementation of Debounce and rule 3.
func (m *model) at(p *pending) time.Time {
	times := p.times
	if len(p.triggers) > 0 {
		first, last := p.triggers[0], p.triggers[len(p.triggers)-1]
		times = append(slices.Clone(times), last.Add(m.debounce.Quiet), first.Add(m.debounce.Max))
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// dueAt returns when a request is due.
func (m *model) dueAt(p *pending) time.Time {
	at := m.at(p)
	if delay, ok := m.holds[p.key]; ok && delay.After(at) {
		return delay
	}
	return at
}

func (m *model) runs(key string) int {
	return slices.IndexFunc(m.running, func(r run) bool { return r.key == key })
}

func (m *model) find(key string) *pending {
	for _, p := range m.pending {
		if p.key == key {
			return p
		}
	}
	return nil
}

func (m *model) drop(p *pending) {
	m.pending = slices.DeleteFunc(m.pending, func(q *pending) bool { return p == q })
}

// put moves a request to the last position; it is due or waits, and if it is due, it may be blocked.
func (m *model) put(p *pending, now time.Time) {
	m.placed++
	p.place, p.timed = m.placed, m.placed
	if p.due = !m.dueAt(p).After(now); p.due {
		p.rank(m.urgent(p), now)
	}
	p.blocked = p.due && m.runs(p.key) >= 0
}

// urgent returns when a request is due with normal priority, or the zero time.
func (m *model) urgent(p *pending) time.Time {
	if p.prio == scheduler.Normal {
		return m.at(p)
	}
	return p.rises
}

// rank gives a request the priority that it has at a time: Normal if one with that priority is due.
func (p *pending) rank(urgent, at time.Time) {
	if p.prio, p.rises = scheduler.Low, urgent; !urgent.IsZero() && !urgent.After(at) {
		p.prio, p.rises = scheduler.Normal, time.Time{}
	}
}

// nextStep returns when a request becomes due, or its priority rises; false if neither happens.
func (m *model) nextStep(p *pending) (time.Time, bool) {
	switch {
	case !p.due:
		return m.dueAt(p), true
	case p.blocked || p.rises.IsZero():
		return time.Time{}, false
	}
	return p.rises, true
}

// clamp returns a time that is neither in the past nor more than MaxDelay ahead.
func clamp(now, at time.Time) time.Time {
	if at.Before(now) {
		return now
	}
	if far := now.Add(scheduler.MaxDelay); at.After(far) {
		return far
	}
	return at
}

func (m *model) schedule(now time.Time, req request) {
	m.advance(now)
	at := clamp(now, req.At)
	// ask adds the request to a pending one, and returns when that is due with normal priority.
	ask := func(p *pending) time.Time {
		urgent := m.urgent(p)
		if !p.due {
			if req.At.IsZero() && m.debounce.Quiet > 0 {
				p.triggers = append(p.triggers, now)
				at = m.at(p)
			} else {
				p.times = append(p.times, at)
			}
		}
		if req.Priority == scheduler.Normal && (urgent.IsZero() || at.Before(urgent)) {
			return at
		}
		return urgent
	}
	old := m.find(req.Key)
	if old == nil {
		p := &pending{key: req.Key, msg: req.Msg, prio: scheduler.Low}
		p.rank(ask(p), m.at(p))
		m.pending = append(m.pending, p)
		m.put(p, now)
		return
	}
	if !old.due && !at.After(m.at(old)) {
		old.msg = req.Msg
	}
	before, prio, rises := m.dueAt(old), old.prio, old.rises
	urgent := ask(old)
	switch {
	case !old.due:
		if old.rank(urgent, m.at(old)); !m.dueAt(old).Equal(before) {
			m.put(old, now)
		}
	case old.blocked:
		old.rank(urgent, now)
	case prio == scheduler.Low && !urgent.Equal(rises):
		if old.rank(urgent, now); old.prio == scheduler.Normal {
			m.put(old, now)
			return
		}
		m.placed++
		old.timed = m.placed
	}
}

func (m *model) delay(now time.Time, key string, until time.Time) {
	m.advance(now)
	until = clamp(now, until)
	p := m.find(key)
	if p != nil && p.due && !until.After(now) {
		return
	}
	delete(m.holds, key)
	if until.After(now) {
		m.holds[key] = until
	}
	if p != nil {
		m.put(p, now)
	}
}

func (m *model) advance(now time.Time) {
	m.now = now
	for {
		var first *pending
		var when time.Time
		for _, p := range m.pending {
			at, ok := m.nextStep(p)
			if ok && !at.After(now) && (first == nil || at.Before(when) || at.Equal(when) && p.timed < first.timed) {
				first, when = p, at
			}
		}
		if first == nil {
			return
		}
		m.put(first, now)
	}
}

// oldest returns the next request of a priority among those that can be handed out.
func (m *model) oldest(prio scheduler.Priority) *pending {
	var first *pending
	for _, p := range m.pending {
		if p.due && !p.blocked && p.prio == prio && (first == nil || p.place < first.place) {
			first = p
		}
	}
	return first
}

func (m *model) pop(now time.Time) (item, bool) {
	m.advance(now)
	low, normal := m.oldest(scheduler.Low), m.oldest(scheduler.Normal)
	next := normal
	switch {
	case low == nil:
		m.passed = 0
	case normal == nil || m.passed == scheduler.MaxPassedOver:
		next, m.passed = low, 0
	default:
		m.passed++
	}
	if next == nil {
		return item{}, false
	}
	readyAt := m.dueAt(next)
	m.drop(next)
	delete(m.holds, next.key)
	m.running = append(m.running, run{next.key, now, next.msg, next.prio})
	return item{Key: next.key, Msg: next.msg, Priority: next.prio, ReadyAt: readyAt}, true
}

func (m *model) done(key string) {
	i := m.runs(key)
	if i < 0 {
		return
	}
	m.running = slices.Delete(m.running, i, i+1)
	if p := m.find(key); p != nil && p.blocked {
		m.put(p, m.now)
	}
}

func (m *model) forget(key string) {
	p := m.find(key)
	if p == nil {
		return
	}
	m.drop(p)
	if i := m.runs(key); i >= 0 {
		m.running[i].msg, m.running[i].prio = "", scheduler.Normal
	}
}

// nextAt returns when something leaves the timers: a request or, if none is pending, a delay.
func (m *model) nextAt(now time.Time) (time.Time, bool) {
	var times []time.Time
	for _, p := range m.pending {
		if at, ok := m.nextStep(p); ok {
			times = append(times, at)
		}
	}
	for key, delay := range m.holds {
		if delay.After(now) && m.find(key) == nil && m.runs(key) < 0 {
			times = append(times, delay)
		}
	}
	if len(times) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(times, time.Time.Compare), true
}

func (m *model) counts() (ready, waiting, running int) {
	for _, p := range m.pending {
		if p.due {
			ready++
		} else {
			waiting++
		}
	}
	return ready, waiting, len(m.running)
}

// startable returns the number of requests of a priority that can be handed out.
func (m *model) startable(prio scheduler.Priority) int {
	n := 0
	for _, p := range m.pending {
		if p.due && !p.blocked && p.prio == prio {
			n++
		}
	}
	return n
}

// oldestReady returns since when the older of the next requests of both classes has been due.
func (m *model) oldestReady() (time.Time, bool) {
	var times []time.Time
	for _, prio := range []scheduler.Priority{scheduler.Low, scheduler.Normal} {
		if p := m.oldest(prio); p != nil {
			times = append(times, m.dueAt(p))
		}
	}
	if len(times) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(times, time.Time.Compare), true
}

func (m *model) lookup(key string) scheduler.View[string] {
	var v scheduler.View[string]
	if i := m.runs(key); i >= 0 {
		r := m.running[i]
		v.Running, v.Since, v.Msg, v.Priority = true, r.since, r.msg, r.prio
	}
	p := m.find(key)
	if p == nil {
		return v
	}
	v.Msg, v.Priority, v.At = p.msg, p.prio, m.dueAt(p)
	switch {
	case p.blocked:
		v.State = scheduler.Blocked
	case p.due:
		v.State = scheduler.Ready
	case v.At.After(m.at(p)):
		v.State = scheduler.Delayed
	case len(p.triggers) > 0:
		v.State = scheduler.Debounced
	default:
		v.State = scheduler.Waiting
	}
	return v
}
