// SPDX-License-Identifier: Apache-2.0

package wasi

import (
	"math"
	"time"
)

// Sizes of what poll_oneoff reads and writes.
const (
	subscriptionSize = 48
	eventSize        = 32
)

// Kinds of events.
const (
	eventClock = iota
	eventRead
	eventWrite
)

// poll is the state of one call.
type poll struct {
	g     Guest
	out   []byte        // where the next event is written
	sleep time.Duration // the shortest; negative where no clock is asked
}

// pollOneoff answers at once where a stream is asked, and sleeps for the shortest
// time where only clocks are.
func pollOneoff(g Guest, p []uint64) Errno {
	n := u32(p[2])
	if n == 0 || n > maxSubscriptions {
		return invalid
	}
	m := g.Memory()
	in, ok := m.Read(u32(p[0]), n*subscriptionSize)
	if !ok {
		return fault
	}
	out, ok := m.Read(u32(p[1]), n*eventSize)
	if !ok {
		return fault
	}
	g.Charge(len(in) + len(out))
	clear(out)
	if !m.WriteUint32Le(u32(p[3]), n) {
		return fault
	}
	return (&poll{g: g, out: out, sleep: -1}).run(in)
}

// run answers each subscription. Streams that are open come last, as if somebody
// had waited for them.
func (p *poll) run(in []byte) Errno {
	var streams [maxSubscriptions]uint16
	waiting := streams[:0]
	for i := range len(in) / subscriptionSize {
		sub := in[i*subscriptionSize:][:subscriptionSize]
		kind := sub[8]
		fd := int32(le.Uint32(sub[16:])) //nolint:gosec // the bits of an i32
		open := find(p.g, fd) != nil
		switch {
		case kind == eventClock:
			if errno := p.clock(sub); errno != OK {
				return errno
			}
			p.event(sub, kind, OK)
		case kind > eventWrite:
			return invalid
		case fd < 0:
			return badFile
		case !open:
			p.event(sub, kind, badFile)
		case kind == eventWrite:
			p.event(sub, kind, notSup)
		default:
			waiting = append(waiting, uint16(i)) //nolint:gosec // fewer than maxSubscriptions
		}
	}
	if len(waiting) == 0 {
		if p.sleep > 0 {
			p.g.Sleep(p.sleep)
		}
		return OK
	}
	if find(p.g, 0) == nil {
		return badFile
	}
	for _, i := range waiting {
		p.event(in[int(i)*subscriptionSize:], eventRead, OK)
	}
	return OK
}

// clock reads a subscription to a clock: how long from now on.
func (p *poll) clock(sub []byte) Errno {
	const absolute = 1
	switch flags := le.Uint16(sub[40:]); {
	case flags == absolute:
		return notSup
	case flags > absolute:
		return invalid
	}
	d := time.Duration(min(le.Uint64(sub[24:]), math.MaxInt64)) //nolint:gosec // it fits
	if p.sleep < 0 || d < p.sleep {
		p.sleep = d
	}
	return OK
}

func (p *poll) event(sub []byte, kind byte, errno Errno) {
	copy(p.out, sub[:8])                   // what the guest knows it by
	le.PutUint16(p.out[8:], uint16(errno)) //nolint:gosec // small
	le.PutUint32(p.out[10:], uint32(kind))
	p.out = p.out[eventSize:]
}
