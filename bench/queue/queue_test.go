// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// rounds is how often each peer does the same work, in turns with the others.
const rounds = 7

// contender is a peer that does some work once and returns the time for one key.
type contender struct {
	name string
	run  func() time.Duration
}

// compare makes contenders do the same work in turns, and reports the median time per key of each, with its ratio to
// the first: the median of the rounds' ratios.
func compare(b *testing.B, contenders []contender) {
	times := make([][]float64, len(contenders))
	ratios := make([][]float64, len(contenders))
	for range b.N * rounds {
		for i, c := range contenders {
			runtime.GC()
			times[i] = append(times[i], float64(c.run().Nanoseconds()))
		}
		for i := range contenders {
			ratios[i] = append(ratios[i], times[i][len(times[i])-1]/times[0][len(times[0])-1])
		}
	}
	b.ReportMetric(0, "ns/op") // meaningless: it is for all rounds of all contenders
	for i, c := range contenders {
		b.ReportMetric(median(times[i]), c.name+"-ns/key")
		if i > 0 {
			b.ReportMetric(median(ratios[i]), c.name+"-x")
		}
	}
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// alone returns contenders that use a queue from one goroutine: prepare is not timed, work is.
func alone(keys []key, prepare, work func(q queue, keys []key)) []contender {
	var all []contender
	for _, p := range append([]peer{ours}, theirs...) {
		all = append(all, contender{p.name, func() time.Duration {
			q := p.new()
			defer q.ShutDown()
			prepare(q, keys)
			begin := time.Now()
			work(q, keys)
			return time.Since(begin) / time.Duration(len(keys))
		}})
	}
	return all
}

func nothing(queue, []key) {}

func addAll(q queue, keys []key) {
	for _, k := range keys {
		q.Add(k)
	}
}

// settle waits until the queue has processed everything that was added: two of the peers do that in a separate
// goroutine.
func settle(q queue) {
	q.AddAfter(key{name: "last"}, 1)
	k, _ := q.Get()
	q.Done(k)
}

// BenchmarkQueue_AddGetDone processes one key after the other.
func BenchmarkQueue_AddGetDone(b *testing.B) {
	compare(b, alone(newKeys(20_000), nothing, func(q queue, keys []key) {
		for _, k := range keys {
			q.Add(k)
			got, _ := q.Get()
			q.Done(got)
		}
	}))
}

// BenchmarkQueue_Burst100k adds 100,000 keys, like a first listing, and processes them.
func BenchmarkQueue_Burst100k(b *testing.B) {
	compare(b, alone(newKeys(100_000), nothing, func(q queue, keys []key) {
		addAll(q, keys)
		for range keys {
			k, _ := q.Get()
			q.Done(k)
		}
	}))
}

// BenchmarkQueue_AddDuplicate adds 100,000 keys that are queued already.
func BenchmarkQueue_AddDuplicate(b *testing.B) {
	compare(b, alone(newKeys(100_000), addAll, func(q queue, keys []key) {
		addAll(q, keys)
		k, _ := q.Get()
		q.Done(k)
	}))
}

// BenchmarkQueue_AddAfter adds 100,000 keys that are due later, like the requeues of 100,000 objects.
func BenchmarkQueue_AddAfter(b *testing.B) {
	compare(b, alone(newKeys(100_000), nothing, func(q queue, keys []key) {
		for i, k := range keys {
			q.AddAfter(k, time.Hour+time.Duration(i%1000)*time.Second)
		}
		settle(q)
	}))
}

// BenchmarkQueue_Absorb triggers 100,000 keys that have a timer, processes them and sets the timer again: a round of
// changes of objects that requeue. With client-go, the old timers remain in addition to the new requests.
func BenchmarkQueue_Absorb(b *testing.B) {
	later := func(q queue, keys []key) {
		for i, k := range keys {
			q.AddAfter(k, time.Hour+time.Duration(i%1000)*time.Second)
		}
		settle(q)
	}
	compare(b, alone(newKeys(100_000), later, func(q queue, keys []key) {
		addAll(q, keys)
		for range keys {
			k, _ := q.Get()
			q.Done(k)
			q.AddAfter(k, 2*time.Hour)
		}
		settle(q)
	}))
}

// workers is the number of concurrent jobs in the benchmarks end to end.
const workers = 4

// endToEnd returns contenders that run an empty job for each key on workers, from the first key that a producer adds to
// the end of the last job.
func endToEnd(keys []key, producers int) []contender {
	all := []contender{{"runner", func() time.Duration { return runnerEndToEnd(keys, producers) / time.Duration(len(keys)) }}}
	for _, p := range theirs {
		all = append(all, contender{p.name, func() time.Duration { return queueEndToEnd(p.new(), keys, producers) / time.Duration(len(keys)) }})
	}
	return all
}

// produce calls add for each key, from a number of goroutines.
func produce(keys []key, producers int, add func(i int)) {
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := p; i < len(keys); i += producers {
				add(i)
			}
		})
	}
	wg.Wait()
}

// runnerEndToEnd sends one request per message, like a watch.
func runnerEndToEnd(keys []key, producers int) time.Duration {
	reqs := make([]scheduler.Request[key, string], len(keys))
	for i, k := range keys {
		reqs[i].Key = k
	}
	r, err := runner.New(runner.Config[string]{Concurrency: workers}, func(context.Context, scheduler.Item[key, string]) scheduler.Next[string] {
		return scheduler.Next[string]{}
	})
	if err != nil {
		panic(err)
	}
	requests := make(chan []scheduler.Request[key, string])
	ended := make(chan error)
	begin := time.Now()
	go func() {
		ended <- r.Run(context.Background(), runner.Input[key, string]{Requests: requests})
	}()
	produce(keys, producers, func(i int) { requests <- reqs[i : i+1] })
	close(requests)
	if err := <-ended; err != nil || r.Stats().Started != uint64(len(keys)) {
		panic("not every key was run")
	}
	return time.Since(begin)
}

func queueEndToEnd(q queue, keys []key, producers int) time.Duration {
	var left atomic.Int64
	left.Store(int64(len(keys)))
	var wg sync.WaitGroup
	begin := time.Now()
	for range workers {
		wg.Go(func() {
			for {
				k, shutdown := q.Get()
				if shutdown {
					return
				}
				q.Done(k)
				if left.Add(-1) == 0 {
					q.ShutDown()
				}
			}
		})
	}
	produce(keys, producers, func(i int) { q.Add(keys[i]) })
	wg.Wait()
	return time.Since(begin)
}

// BenchmarkQueue_EndToEnd is one producer, like one watch, and four workers.
func BenchmarkQueue_EndToEnd(b *testing.B) { compare(b, endToEnd(newKeys(50_000), 1)) }

// BenchmarkQueue_Contended is four producers and four workers.
func BenchmarkQueue_Contended(b *testing.B) { compare(b, endToEnd(newKeys(50_000), 4)) }

// BenchmarkQueue_Memory reports the memory of a key that waits for its time.
func BenchmarkQueue_Memory(b *testing.B) {
	keys := newKeys(100_000)
	for range b.N {
		for _, p := range append([]peer{ours}, theirs...) {
			q := p.new()
			before := heapInUse()
			for i, k := range keys {
				q.AddAfter(k, time.Hour+time.Duration(i)*time.Millisecond)
			}
			settle(q)
			b.ReportMetric(float64(heapInUse()-before)/float64(len(keys)), p.name+"-B/key")
			defer q.ShutDown() // not earlier: memory that it frees must not count for the next one
		}
	}
	b.ReportMetric(0, "ns/op")
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
