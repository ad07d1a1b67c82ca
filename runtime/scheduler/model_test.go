package scheduler_test

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// model is what Scheduler has to do, written as slice scans and without care for speed.
type model struct {
	pending []*pending // in the order in which they were last placed
	running []string
	passed  int // Normal items handed out in a row while Low was ready
	placed  int
}

// pending is the request of one key in the model.
type pending struct {
	req   request
	due   bool
	held  bool // due, but the key runs
	place int  // order among those that are due and not held, or that wait for the same time
}

func (m *model) find(key string) *pending {
	for _, p := range m.pending {
		if p.req.Key == key {
			return p
		}
	}
	return nil
}

func (m *model) drop(p *pending) {
	m.pending = slices.DeleteFunc(m.pending, func(q *pending) bool { return p == q })
}

// put gives a request the last place; it is due or waits, and if it is due it is held or not.
func (m *model) put(p *pending, now time.Time) {
	m.placed++
	p.place = m.placed
	p.due = !p.req.At.After(now)
	p.held = p.due && slices.Contains(m.running, p.req.Key)
}

func (m *model) schedule(now time.Time, req request) {
	m.advance(now)
	if req.At.Before(now) {
		req.At = now
	}
	if far := now.Add(scheduler.MaxDelay); req.At.After(far) {
		req.At = far
	}
	old := m.find(req.Key)
	if old == nil {
		p := &pending{req: req}
		m.pending = append(m.pending, p)
		m.put(p, now)
		return
	}
	raised := req.Priority > old.req.Priority
	if raised {
		old.req.Priority = req.Priority
	}
	if old.due {
		if raised {
			m.put(old, now)
		}
		return
	}
	if !req.At.After(old.req.At) {
		old.req.Msg = req.Msg
	}
	if req.At.Before(old.req.At) {
		old.req.At = req.At
		m.put(old, now)
	}
}

func (m *model) advance(now time.Time) {
	for {
		var first *pending
		for _, p := range m.pending {
			if p.due || p.req.At.After(now) {
				continue
			}
			if first == nil || p.req.At.Before(first.req.At) || p.req.At.Equal(first.req.At) && p.place < first.place {
				first = p
			}
		}
		if first == nil {
			return
		}
		m.put(first, now)
	}
}

// oldest returns the oldest request of a priority that can be handed out.
func (m *model) oldest(prio scheduler.Priority) *pending {
	var first *pending
	for _, p := range m.pending {
		if p.due && !p.held && p.req.Priority == prio && (first == nil || p.place < first.place) {
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
	m.drop(next)
	m.running = append(m.running, next.req.Key)
	return item{Key: next.req.Key, Msg: next.req.Msg, Priority: next.req.Priority, ReadyAt: next.req.At}, true
}

func (m *model) done(key string) {
	i := slices.Index(m.running, key)
	if i < 0 {
		return
	}
	m.running = slices.Delete(m.running, i, i+1)
	if p := m.find(key); p != nil && p.held {
		m.placed++
		p.held, p.place = false, m.placed
	}
}

func (m *model) forget(key string) {
	if p := m.find(key); p != nil {
		m.drop(p)
	}
}

func (m *model) nextAt() (time.Time, bool) {
	var next time.Time
	found := false
	for _, p := range m.pending {
		if !p.due && (!found || p.req.At.Before(next)) {
			next, found = p.req.At, true
		}
	}
	return next, found
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
