// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// pair is a scheduler and its model, which receive the same calls.
type pair struct {
	s   *keyScheduler
	m   model
	now time.Time
	n   int // calls so far; makes each message unique
}

// debounces are the possible settings of a pair: none, and two bounds.
var debounces = []scheduler.Debounce{{}, {Quiet: 2 * time.Second, Max: 5 * time.Second}, {Quiet: 3 * time.Second, Max: 3 * time.Second}}

func newPair(n byte) *pair {
	d := debounces[int(n)%len(debounces)]
	return &pair{
		s: scheduler.New[string, string](scheduler.Config[string]{Debounce: d}),
		m: model{debounce: d, holds: map[string]time.Time{}}, now: epoch,
	}
}

// pairKeys is the number of keys.
const pairKeys = 12

func pairKey(n byte) string { return string('a' + rune(n%pairKeys)) }

// Operations as bytes: op%opCount, key, delay.
const (
	opSchedule = iota
	opScheduleLow
	opScheduleLater
	opScheduleLowLater
	opTime
	opPop
	opDone
	opForget
	opDelay
	opCount
)

// step makes one call on both and fails the test if their results differ.
func (p *pair) step(t *testing.T, op, keyByte, delay byte) {
	t.Helper()
	p.n++
	key := pairKey(keyByte)
	req := request{Key: key, Msg: strconv.Itoa(p.n)}
	switch op % opCount {
	case opScheduleLow, opScheduleLowLater:
		req.Priority = scheduler.Low
	}
	switch op % opCount {
	case opScheduleLater, opScheduleLowLater:
		req.At = p.now.Add(time.Duration(delay%16) * time.Second)
		if delay > 250 {
			req.At = p.now.Add(scheduler.MaxDelay + time.Duration(delay))
		}
		fallthrough
	case opSchedule, opScheduleLow:
		p.s.Schedule(p.now, req)
		p.m.schedule(p.now, req)
	case opTime:
		p.now = p.now.Add(time.Duration(delay%8) * time.Second / 2)
		p.s.Advance(p.now)
		p.m.advance(p.now)
	case opPop:
		p.pop(t)
	case opDone:
		p.s.Done(key)
		p.m.done(key)
	case opForget:
		p.s.Forget(key)
		p.m.forget(key)
	case opDelay:
		until := p.now.Add(time.Duration(delay%8) * time.Second)
		p.s.Delay(p.now, key, until)
		p.m.delay(p.now, key, until)
	}
	p.compare(t)
}

func (p *pair) pop(t *testing.T) {
	t.Helper()
	got, gotOK := p.s.Pop(p.now)
	want, wantOK := p.m.pop(p.now)
	if got != want || gotOK != wantOK {
		t.Fatalf("call %d: Pop = %+v, %v; the model says %+v, %v", p.n, got, gotOK, want, wantOK)
	}
}

// compare fails the test if the visible states of the two differ.
func (p *pair) compare(t *testing.T) {
	t.Helper()
	ready, waiting, running := p.m.counts()
	wantCounts(t, p.s, ready, waiting, running)
	low, normal := p.m.startable(scheduler.Low), p.m.startable(scheduler.Normal)
	if p.s.Startable() != low+normal || p.s.StartableOf(scheduler.Low) != low || p.s.StartableOf(scheduler.Normal) != normal {
		t.Fatalf("call %d: startable %d, low %d; the model says low %d, normal %d", p.n, p.s.Startable(), p.s.StartableOf(scheduler.Low), low, normal)
	}
	var since time.Time
	var keys []string
	for _, r := range p.m.running {
		keys = append(keys, r.key)
	}
	if running > 0 {
		since = p.m.running[0].since
	}
	if got := slices.Collect(p.s.RunningKeys()); !slices.Equal(got, keys) {
		t.Fatalf("call %d: running %v; the model says %v", p.n, got, keys)
	}
	gotAt, gotOK := p.s.NextAt()
	wantAt, wantOK := p.m.nextAt(p.now)
	p.sameTime(t, "NextAt", gotAt, gotOK, wantAt, wantOK)
	gotAt, gotOK = p.s.OldestReady()
	wantAt, wantOK = p.m.oldestReady()
	p.sameTime(t, "OldestReady", gotAt, gotOK, wantAt, wantOK)
	gotAt, gotOK = p.s.OldestRunning()
	p.sameTime(t, "OldestRunning", gotAt, gotOK, since, running > 0)
	for i := range byte(pairKeys) {
		if got, want := p.s.Lookup(pairKey(i)), p.m.lookup(pairKey(i)); got != want {
			t.Fatalf("call %d: Lookup %s = %+v; the model says %+v", p.n, pairKey(i), got, want)
		}
	}
}

func (p *pair) sameTime(t *testing.T, what string, got time.Time, gotOK bool, want time.Time, wantOK bool) {
	t.Helper()
	if !got.Equal(want) || gotOK != wantOK {
		t.Fatalf("call %d: %s = %v, %v; the model says %v, %v", p.n, what, got, gotOK, want, wantOK)
	}
}

// drain runs everything that is left and checks that both are empty in the end: nothing is lost.
func (p *pair) drain(t *testing.T) {
	t.Helper()
	p.now = p.now.Add(2 * scheduler.MaxDelay)
	for p.s.Len()+p.s.Waiting()+p.s.Running() > 0 {
		for _, key := range slices.Collect(p.s.RunningKeys()) {
			p.s.Done(key)
			p.m.done(key)
		}
		p.pop(t)
		p.compare(t)
	}
	p.s.Advance(p.now)
	if at, ok := p.s.NextAt(); ok {
		t.Fatalf("a timer is left at %v", at)
	}
}

// rules 1 to 8: for any sequence of calls, the scheduler does the same as the model.
func TestScheduler_AgreesWithModel(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			// Each seed has its own mix, so that some runs contain mostly timers, some mostly blocked keys, some both
			// priorities.
			var mix []byte
			for op := range byte(opCount) {
				mix = append(mix, slices.Repeat([]byte{op}, 1+rng.IntN(6))...)
			}
			p := newPair(byte(seed))
			for range 500 {
				p.step(t, mix[rng.IntN(len(mix))], byte(rng.Uint32()), byte(rng.Uint32()))
			}
			p.drain(t)
		})
	}
}

// FuzzScheduler compares scheduler and model on operations read from bytes, three for each; the first byte chooses the debounce.
func FuzzScheduler(f *testing.F) {
	f.Add([]byte{0, opSchedule, 0, 0, opPop, 0, 0, opSchedule, 0, 0, opDone, 0, 0, opPop, 0, 0})
	f.Add([]byte{0, opScheduleLater, 0, 9, opScheduleLow, 1, 0, opScheduleLater, 0, 3, opTime, 0, 4, opPop, 0, 0, opForget, 1, 0})
	f.Add([]byte{0, opScheduleLowLater, 3, 255, opScheduleLater, 3, 251, opPop, 0, 0})
	f.Add([]byte{1, opSchedule, 0, 0, opTime, 0, 3, opSchedule, 0, 0, opTime, 0, 3, opSchedule, 0, 0, opTime, 0, 4, opPop, 0, 0})
	f.Add([]byte{1, opScheduleLater, 0, 3, opSchedule, 0, 0, opDelay, 0, 5, opTime, 0, 7, opPop, 0, 0, opDelay, 0, 3, opDone, 0, 0, opTime, 0, 7})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) == 0 {
			return
		}
		p := newPair(ops[0])
		for op := range slices.Chunk(ops[1:], 3) {
			if len(op) == 3 {
				p.step(t, op[0], op[1], op[2])
			}
		}
		p.drain(t)
	})
}
