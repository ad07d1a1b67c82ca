// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// failing is a native reconciler whose runs of objects named "bad" fail.
func failing() Native {
	return Native{
		Name: "a", For: abi.Watch{Version: "v1", Kind: "ConfigMap"},
		Reconcile: func(_ context.Context, r *Request) (Action, error) {
			<-time.After(time.Second)
			if r.Key.Name == "bad" {
				return Action{}, errors.New("broken")
			}
			return Action{Requeue: true, After: time.Hour}, nil
		},
	}
}

func TestResults_AreThoseOfTheRuns(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		c, err := r.Add(t.Context(), failing(), ControllerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []Result
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for result, err := range c.Results(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, result)
			}
		}()
		passes(time.Minute)
		r.put("bad", 1)
		passes(1100 * time.Millisecond)
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		<-ended // the stream ends with the controller
		if len(got) != 2 {
			t.Fatalf("got %+v", got)
		}
		good, bad := got[0], got[1]
		if good.Object != (abi.Key{Namespace: "shop", Name: "o0"}) || good.Err != nil || good.Failed || good.Action.After != time.Hour ||
			good.Duration() != time.Second || good.Revision != 1 || len(good.Reasons) != 1 || good.Reasons[0].Type != abi.ReasonListed {
			t.Errorf("got %+v", good)
		}
		if bad.Object.Name != "bad" || bad.Err == nil || !bad.Failed || bad.Attempt != 1 || !bad.Action.Requeue || bad.Reasons[0].Type != abi.ReasonObjectUpdated {
			t.Errorf("got %+v", bad)
		}
	})
}

func publish(s *results, from, to int) {
	for i := from; i < to; i++ {
		s.publish(&applier.Outcome{Key: abi.Key{Name: fmt.Sprint(i)}})
	}
}

// A slow reader loses the oldest results, learns once how many, and continues.
func TestResults_SlowReaderLosesTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s results
		ended := make(chan struct{})
		go func() {
			synctest.Wait() // it reads
			publish(&s, 0, 1)
		}()
		n, lost := 0, 0
		for result, err := range s.stream(t.Context(), ended) {
			switch e, ok := errors.AsType[*LostError](err); {
			case ok && lost == 0:
				lost = int(e.Count) //nolint:gosec // small
			case ok || result.Object.Name != fmt.Sprint(n+lost):
				t.Fatalf("result %d after %d were lost is that of %s; error %v", n, lost, result.Object, err)
			default:
				if n++; n == 1 {
					publish(&s, 1, maxUnread+8) // seven too many
					close(ended)
				}
			}
		}
		if n != maxUnread+1 || lost != 7 {
			t.Errorf("%d results, %d lost", n, lost)
		}
	})
}

// The stream ends at once with its context, and leaves nothing behind if the loop is left.
func TestResults_EndWithTheContextOrTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s results
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			publish(&s, 0, 2)
			synctest.Wait()
			cancel()
		}()
		n := 0
		for range s.stream(ctx, nil) { //nolint:errcheck // yields an error with each result
			n++
		}
		for range s.stream(ctx, nil) { //nolint:errcheck // yields an error with each result
			t.Error("a result after the end")
		}
		go func() {
			synctest.Wait()
			publish(&s, 2, 4)
		}()
		for result := range s.stream(t.Context(), nil) { //nolint:errcheck // yields an error with each result
			if result.Object.Name != "2" {
				t.Errorf("got %s", result.Object)
			}
			break
		}
		if n != 2 || s.readers.Load() != nil {
			t.Errorf("%d results; readers %v", n, s.readers.Load())
		}
	})
}

// Without a reader nothing is allocated, also after one has left.
func TestResults_CostNothingWithoutAReader(t *testing.T) {
	var s results
	s.unsubscribe(s.subscribe())
	out := &applier.Outcome{}
	if n := testing.AllocsPerRun(100, func() { s.publish(out) }); n != 0 || s.readers.Load() != nil {
		t.Errorf("%v allocations", n)
	}
}

// Readers come and go while runs end. Each gets the results in order, and learns of each
// that it has not got.
func TestResults_Hammer(t *testing.T) {
	const runs = 20_000
	var s results
	ended := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for leaves := range 200 { // short loops, and a last one to the end
				next, first := 0, true
				for result, err := range s.stream(t.Context(), ended) {
					if e, ok := errors.AsType[*LostError](err); ok {
						next += int(e.Count) //nolint:gosec // small
						continue
					}
					got, _ := strconv.Atoi(result.Object.Name)
					if !first && got != next {
						t.Errorf("reader %d got %d, want %d", i, got, next)
						return
					}
					if next, first = got+1, false; leaves < 199 && got%50 == i {
						break
					}
				}
				if leaves == 199 && !first && next != runs {
					t.Errorf("reader %d has the results up to %d", i, next)
				}
			}
		})
	}
	publish(&s, 0, runs)
	close(ended)
	wg.Wait()
	if s.readers.Load() != nil {
		t.Error("a reader is left")
	}
}
