package scheduler_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// pair is a scheduler and its model, which get the same calls.
type pair struct {
	s   *keyScheduler
	m   model
	now time.Time
	n   int // calls so far; makes each message unique
}

// Operations as bytes: op%8, key, delay.
const (
	opSchedule = iota
	opScheduleLow
	opScheduleLater
	opScheduleLowLater
	opTime
	opPop
	opDone
	opForget
	opCount
)

// step makes one call on both and fails the test if they answer differently.
func (p *pair) step(t *testing.T, op, keyByte, delay byte) {
	t.Helper()
	p.n++
	key := string('a' + rune(keyByte%12))
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
		p.now = p.now.Add(time.Duration(delay%8) * time.Second)
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

// compare fails the test if what can be seen of the two differs.
func (p *pair) compare(t *testing.T) {
	t.Helper()
	ready, waiting, running := p.m.counts()
	wantCounts(t, p.s, ready, waiting, running)
	gotAt, gotOK := p.s.NextAt()
	if wantAt, wantOK := p.m.nextAt(); !gotAt.Equal(wantAt) || gotOK != wantOK {
		t.Fatalf("call %d: NextAt = %v, %v; the model says %v, %v", p.n, gotAt, gotOK, wantAt, wantOK)
	}
	if got := slices.Collect(p.s.RunningKeys()); !slices.Equal(got, p.m.running) {
		t.Fatalf("call %d: running %v; the model says %v", p.n, got, p.m.running)
	}
}

// drain runs everything that is left and checks that both end empty: nothing is lost.
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
}

// rules 1, 2, 3, 4, 5, 7, 8: whatever is done to it, the scheduler does what the model does.
func TestScheduler_AgreesWithModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		// Each seed has its own mix, so that some runs are full of timers, some of held keys, some of both priorities.
		var mix []byte
		for op := range byte(opCount) {
			mix = append(mix, slices.Repeat([]byte{op}, 1+rng.IntN(6))...)
		}
		p := pair{s: newScheduler(), now: epoch}
		for range 500 {
			p.step(t, mix[rng.IntN(len(mix))], byte(rng.Uint32()), byte(rng.Uint32()))
		}
		p.drain(t)
	}
}

// FuzzScheduler compares scheduler and model on operations read from bytes, three for each.
func FuzzScheduler(f *testing.F) {
	f.Add([]byte{opSchedule, 0, 0, opPop, 0, 0, opSchedule, 0, 0, opDone, 0, 0, opPop, 0, 0})
	f.Add([]byte{opScheduleLater, 0, 9, opScheduleLow, 1, 0, opScheduleLater, 0, 3, opTime, 0, 4, opPop, 0, 0, opForget, 1, 0})
	f.Add([]byte{opScheduleLowLater, 3, 255, opScheduleLater, 3, 251, opPop, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := pair{s: newScheduler(), now: epoch}
		for op := range slices.Chunk(ops, 3) {
			if len(op) == 3 {
				p.step(t, op[0], op[1], op[2])
			}
		}
		p.drain(t)
	})
}
