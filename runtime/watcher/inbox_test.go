// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// thing packs an object: version v of a uid, with one label.
func thing(tb testing.TB, name string, uid, v int, label string) *reflector.Object {
	tb.Helper()
	o, err := reflector.Pack(map[string]any{"metadata": map[string]any{
		"name": name, "uid": fmt.Sprint("u", uid), "resourceVersion": fmt.Sprint(v),
		"labels": map[string]any{"l": label},
	}}, reflector.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// drain handles the contents of an inbox.
func drain(b *inbox, handler func(reflector.Event)) {
	ctx, cancel := context.WithCancel(context.Background())
	b.put(reflector.Event{Type: reflector.Applied, New: &reflector.Object{}}) // the last, which ends it
	b.deliver(ctx, func(_ context.Context, ev reflector.Event) {
		if ev.New != nil && ev.New.UID() == "" {
			cancel()
			return
		}
		handler(ev)
	})
}

// Random changes with an inbox that is emptied from time to time: the resulting events fit together without a gap and
// lead to the same content; each label that an object has had was in Old or New; each creation and deletion was
// delivered; and the number of waiting events per object is bounded.
func TestInbox_LeavesOutNothingThatMatters(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		b := newInbox()
		w := reflector.NewWriter()
		in, out := newTally(), newTally()
		b.join(nil)
		record := func(ev reflector.Event) {
			in.see(t, ev)
			b.put(ev)
		}
		for v := 1; v < 400; v++ {
			name := fmt.Sprint("n", rnd.IntN(5))
			switch old := w.Store().Get(reflector.ObjectRef{Name: name}); {
			case rnd.IntN(60) == 0 || crowded(b):
				drain(b, func(ev reflector.Event) { out.see(t, ev) })
			case rnd.IntN(80) == 0:
				w.Replace([]*reflector.Object{thing(t, name, v, v, "x")}, fmt.Sprint(v), record)
			case old != nil && rnd.IntN(20) == 0:
				w.Delete(old, record)
			default:
				uid := 1
				if rnd.IntN(30) == 0 {
					uid = v
				}
				label := "same"
				if rnd.IntN(30) == 0 {
					label = fmt.Sprint(v)
				}
				w.Apply(thing(t, name, uid, v, label), record)
			}
		}
		drain(b, func(ev reflector.Event) { out.see(t, ev) })
		out.agrees(t, seed, in)
		if n := b.waiting.Load(); n != 0 {
			t.Errorf("seed %d: %d events wait in an empty inbox", seed, n)
		}
	}
}

// crowded reports whether an object is about to have maxStates events waiting.
func crowded(b *inbox) bool {
	return slices.ContainsFunc(b.events, func(p pending) bool { return len(p.more)+3 > maxStates })
}

// tally is the information that a user gets from events.
type tally struct {
	content map[string]*reflector.Object
	labels  map[string]bool // all labels that each object has ever had
	gone    map[string]int  // deletions by uid
	events  int
}

func newTally() *tally {
	return &tally{map[string]*reflector.Object{}, map[string]bool{}, map[string]int{}, 0}
}

func (l *tally) see(t *testing.T, ev reflector.Event) {
	t.Helper()
	name := ev.Ref().Name
	if l.content[name] != ev.Old {
		t.Fatalf("%s %s: Old is not the state before", ev.Type, name)
	}
	l.events++
	for _, o := range []*reflector.Object{ev.Old, ev.New} {
		if o != nil {
			l.labels[name+"="+o.Labels().Get("l")] = true
		}
	}
	if delete(l.content, name); ev.Type == reflector.Deleted {
		l.gone[ev.Old.UID()]++
	} else {
		l.content[name] = ev.New
	}
}

func (l *tally) agrees(t *testing.T, seed uint64, in *tally) {
	t.Helper()
	if fmt.Sprint(l.content) != fmt.Sprint(in.content) || fmt.Sprint(l.gone) != fmt.Sprint(in.gone) {
		t.Fatalf("seed %d: content or deletions differ", seed)
	}
	for label := range in.labels {
		if !l.labels[label] {
			t.Errorf("seed %d: nobody was notified of %s", seed, label)
		}
	}
	if l.events >= in.events {
		t.Errorf("seed %d: %d events of %d: nothing was left out", seed, l.events, in.events)
	}
}

// The number of waiting events is bounded by the objects, whatever changes.
func TestInbox_IsBoundedByObjects(t *testing.T) {
	b := newInbox()
	old := map[string]*reflector.Object{}
	for v := 1; v < 5000; v++ {
		name := fmt.Sprint("n", v%10)
		o := thing(t, name, 1, v, fmt.Sprint(v)) // another label each time
		b.put(reflector.Event{Type: reflector.Applied, Old: old[name], New: o})
		old[name] = o
	}
	if n := b.waiting.Load(); n != 10*maxStates {
		t.Errorf("%d events wait for 10 objects, want %d", n, 10*maxStates)
	}
	last := map[string]string{}
	drain(b, func(ev reflector.Event) { last[ev.Ref().Name] = ev.New.ResourceVersion() })
	for name, o := range old {
		if last[name] != o.ResourceVersion() {
			t.Errorf("%s ends at %s, want %s", name, last[name], o.ResourceVersion())
		}
	}
}

// An event that comes while the handler is busy waits and merges with the next one; a Listed object does not merge: its
// changes come after it.
func TestInbox_MergesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		var got []string
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			b.deliver(ctx, func(_ context.Context, ev reflector.Event) {
				<-release
				from := "-"
				if ev.Old != nil {
					from = ev.Old.ResourceVersion()
				}
				got = append(got, fmt.Sprintf("%s %s>%s", ev.Type, from, ev.New.ResourceVersion()))
			})
		})
		states := []*reflector.Object{}
		for v := range 6 {
			states = append(states, thing(t, "a", 1, v+1, "same"))
		}
		b.join(states[:1])
		synctest.Wait() // the handler is busy with the listed object
		for v := 1; v < 6; v++ {
			b.put(reflector.Event{Type: reflector.Applied, Old: states[v-1], New: states[v]})
		}
		select {
		case <-b.synced:
			t.Error("synced before the listed object was handled")
		default:
		}
		close(release)
		synctest.Wait()
		if want := "Listed ->1, Applied 1>6"; strings.Join(got, ", ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
		<-b.synced
		cancel()
		running.Wait()
	})
}

// With real goroutines, under the race detector.
func TestInbox_Hammer(t *testing.T) {
	b := newInbox()
	in, out := newTally(), newTally()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		b.deliver(ctx, func(_ context.Context, ev reflector.Event) {
			if out.see(t, ev); ev.Ref().Name == "end" {
				cancel()
			}
		})
	})
	b.join(nil)
	for v := 1; v < 3000; v++ {
		name := fmt.Sprint("n", v%7)
		ev := reflector.Event{Type: reflector.Applied, Old: in.content[name], New: thing(t, name, 1, v, fmt.Sprint(v/50))}
		in.see(t, ev)
		b.put(ev)
	}
	ev := reflector.Event{Type: reflector.Applied, New: thing(t, "end", 1, 1, "")}
	in.see(t, ev)
	b.put(ev)
	running.Wait()
	if fmt.Sprint(in.content) != fmt.Sprint(out.content) {
		t.Error("content differs")
	}
}

// BenchmarkInbox is one event in and out, including the switch to another goroutine.
func BenchmarkInbox(b *testing.B) {
	box := newInbox()
	handled := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		box.deliver(ctx, func(context.Context, reflector.Event) { handled <- struct{}{} })
	})
	ev := reflector.Event{Type: reflector.Applied, New: thing(b, "a", 1, 1, "x")}
	b.ReportAllocs()
	for b.Loop() {
		box.put(ev)
		<-handled
	}
	cancel()
	running.Wait()
}
