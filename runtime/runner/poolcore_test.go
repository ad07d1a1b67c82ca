// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// poolModel checks the invariants of a poolCore, recomputed from the clients after each call.
type poolModel struct {
	t    *testing.T
	core poolCore
	over bool // more is taken or reserved than the limit allows, since the last join or resize
}

// recount returns the number of slots of the clients: in total, and beyond the first of each.
func (m *poolModel) recount() (taken, shared, waiting int) {
	for _, mem := range m.core.clients {
		taken += mem.taken
		shared += max(0, mem.taken-1)
		if mem.wants > 0 {
			waiting++
		}
	}
	return taken, shared, waiting
}

// may reports whether a client may have one more slot.
func (m *poolModel) may(mem *client) bool {
	taken, shared, _ := m.recount()
	return taken < m.core.limit && (mem.taken == 0 || shared < m.core.limit-len(m.core.clients))
}

// settle makes the pending grants, and checks each grant and the remaining state.
func (m *poolModel) settle() {
	for {
		var want *client
		for _, mem := range m.core.clients {
			if mem.wants == 0 {
				continue
			}
			if want == nil || mem.taken < want.taken || mem.taken == want.taken && mem.asked < want.asked {
				want = mem
			}
		}
		if want != nil && !m.may(want) {
			want = nil
		}
		got := m.core.grant()
		if got != want {
			m.t.Fatalf("granted to %p, want %p", got, want)
		}
		if got == nil {
			break
		}
	}
	taken, shared, waiting := m.recount()
	if taken != m.core.taken || shared != m.core.shared || waiting != m.core.waiting {
		m.t.Fatalf("taken %d, shared %d, waiting %d; counted %d, %d, %d", m.core.taken, m.core.shared, m.core.waiting, taken, shared, waiting)
	}
	m.over = m.over && (taken > m.core.limit || shared > m.core.limit-len(m.core.clients))
	if !m.over && (taken > m.core.limit || shared > m.core.limit-len(m.core.clients)) {
		m.t.Fatalf("%d taken, %d of them shared, by %d clients, of %d slots", taken, shared, len(m.core.clients), m.core.limit)
	}
	for _, mem := range m.core.clients {
		if mem.wants > 0 && m.may(mem) {
			m.t.Fatal("a client waits for a slot that it may have")
		}
		if mem.taken < mem.granted || mem.granted < 0 || mem.wants < 0 {
			m.t.Fatalf("client %+v", *mem)
		}
	}
}

func (m *poolModel) take(mem *client, wants int) {
	before, had := mem.taken, mem.granted > 0
	reserved := mem.taken == 0 && !m.over
	ok := m.core.take(mem, wants)
	switch {
	case had && (!ok || mem.taken != before):
		m.t.Fatal("a granted slot was not taken")
	case reserved && !ok:
		m.t.Fatal("a client did not get its reserved slot")
	case !ok && mem.wants != wants:
		m.t.Fatalf("wants %d, not %d", mem.wants, wants)
	}
}

// step makes one call: op selects the call, who the client.
func (m *poolModel) step(op, who byte) {
	n := len(m.core.clients)
	if n == 0 || op == 0 && n < m.core.limit {
		m.core.clients = append(m.core.clients, &client{})
		m.over = true
		return
	}
	mem := m.core.clients[int(who)%n]
	switch {
	case op < 4:
		m.core.limit = n + int(who)%8
		m.over = true
	case op < 8:
		for m.core.retract(mem); mem.taken > 0; {
			m.core.release(mem)
		}
		m.core.leave(mem)
	case op < 20:
		m.core.retract(mem)
	case op < 120:
		if mem.taken > mem.granted {
			m.core.release(mem)
		}
	default:
		m.take(mem, 1+int(op)%4)
	}
}

// rule 5 and fairness, on random calls: the limit is respected, reserved slots stay free, a free slot goes to the
// client with the fewest and, among equals, to the one that waited longest, and no client waits for a slot that it may
// have.
func TestPoolCore_KeepsItsRules(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			m := &poolModel{t: t, core: poolCore{limit: 1 + rng.IntN(10)}}
			for range 1000 {
				m.step(byte(rng.Uint32()), byte(rng.Uint32()))
				m.settle()
			}
		})
	}
}

// FuzzPoolCore is the same on calls read from bytes, two for each; the first byte is the limit.
func FuzzPoolCore(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 200, 0, 200, 0, 200, 0, 200, 1, 30, 0, 200, 1})
	f.Add([]byte{2, 0, 0, 200, 0, 200, 0, 0, 0, 200, 1, 30, 0, 10, 1, 5, 0})
	f.Fuzz(func(t *testing.T, calls []byte) {
		if len(calls) == 0 {
			return
		}
		m := &poolModel{t: t, core: poolCore{limit: 1 + int(calls[0])%10}}
		for call := range slices.Chunk(calls[1:], 2) {
			if len(call) == 2 {
				m.step(call[0], call[1])
				m.settle()
			}
		}
	})
}
