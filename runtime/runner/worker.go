package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// maxIdle is how many workers without a job are kept. More than that are only needed in bursts of a Runner of high concurrency, and a burst
// should give its memory back.
const maxIdle = 64

// slot is one job, from its start to its end, and then the next one. The loop writes item, busy and started before it hands the slot to a
// worker; the worker writes outcome and ended before it hands it back.
type slot[K comparable, M any] struct {
	item    scheduler.Item[K, M]
	busy    bool
	started time.Time
	outcome Outcome[M]
	ended   time.Time
}

// workers are the goroutines that jobs run on. They are kept after a job and used for the next one: their stacks have grown to what jobs
// need, which a fresh goroutine would have to repeat for each. All fields belong to the loop; a worker only knows call, tasks and done.
type workers[K comparable, M any] struct {
	call  func(context.Context, scheduler.Item[K, M]) Outcome[M]
	tasks chan *slot[K, M] // nil ends a worker
	done  chan *slot[K, M] // has room for every running job, so that no job waits for the loop
	slots []*slot[K, M]    // every slot
	free  []*slot[K, M]    // the slots that are not busy
	count int              // workers that were not told to end
	wg    sync.WaitGroup
}

func newWorkers[K comparable, M any](concurrency int, call func(context.Context, scheduler.Item[K, M]) Outcome[M]) workers[K, M] {
	return workers[K, M]{call: call, tasks: make(chan *slot[K, M], concurrency), done: make(chan *slot[K, M], concurrency)}
}

// start starts a job.
func (w *workers[K, M]) start(ctx context.Context, item scheduler.Item[K, M], now time.Time) {
	if len(w.free) == 0 {
		s := &slot[K, M]{}
		w.slots, w.free = append(w.slots, s), append(w.free, s)
	}
	s := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	s.item, s.busy, s.started = item, true, now
	w.tasks <- s
	if w.busy() > w.count {
		w.count++
		w.wg.Go(func() { w.work(ctx) })
	}
}

// busy returns how many jobs run.
func (w *workers[K, M]) busy() int { return len(w.slots) - len(w.free) }

// finish takes a slot back whose job has ended, after what is of interest has been read from it.
func (w *workers[K, M]) finish(s *slot[K, M]) {
	*s = slot[K, M]{} // what is done must not be kept from the garbage collector
	w.free = append(w.free, s)
	if w.count-w.busy() > maxIdle {
		w.count--
		w.tasks <- nil
	}
}

// close ends the workers once none is busy, and returns when they have ended.
func (w *workers[K, M]) close() {
	close(w.tasks)
	w.wg.Wait()
}

// work is the goroutine of a worker.
func (w *workers[K, M]) work(ctx context.Context) {
	for s := range w.tasks {
		if s == nil {
			return
		}
		s.outcome = w.call(ctx, s.item)
		s.ended = time.Now()
		w.done <- s
	}
}

// call calls the job. If the job does not return, it panics with the key in the message; the stack below it is still that of the job.
func (r *Runner[K, M]) call(ctx context.Context, item scheduler.Item[K, M]) Outcome[M] {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(fmt.Sprintf("BUG: runner: job[%v]: panic: %v", item.Key, v))
		}
		panic(fmt.Sprintf("BUG: runner: job[%v]: called runtime.Goexit", item.Key))
	}()
	outcome := r.job(ctx, item)
	returned = true
	return outcome
}
