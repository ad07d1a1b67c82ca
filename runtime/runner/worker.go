// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// maxIdle is the maximum number of idle workers. More are needed only in bursts of a Runner with high concurrency, and after a burst the
// memory should be freed.
const maxIdle = 64

// slot carries one job from its start to its end, and is then reused. The loop writes item, busy and started before it passes the slot to a
// worker; the worker writes next and ended before it passes it back.
type slot[K comparable, M any] struct {
	item    scheduler.Item[K, M]
	busy    bool
	started time.Time
	next    scheduler.Next[M]
	ended   time.Time
}

// workers are the goroutines that run jobs. They are reused, because their stacks have grown to the size that jobs need and a new goroutine
// would have to grow its stack again. All fields belong to the loop; a worker uses only call, tasks and done.
type workers[K comparable, M any] struct {
	call  func(context.Context, scheduler.Item[K, M]) scheduler.Next[M]
	tasks chan *slot[K, M] // nil ends a worker
	done  chan *slot[K, M] // has room for every running job, so that no job waits for the loop
	slots []*slot[K, M]    // all slots
	free  []*slot[K, M]    // the slots that are not busy
	count int              // workers that have not been asked to end
	wg    sync.WaitGroup
}

func newWorkers[K comparable, M any](concurrency int, call func(context.Context, scheduler.Item[K, M]) scheduler.Next[M]) workers[K, M] {
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

// busy returns the number of running jobs.
func (w *workers[K, M]) busy() int { return len(w.slots) - len(w.free) }

// finish frees the slot of an ended job. The caller must have read the outcome before.
func (w *workers[K, M]) finish(s *slot[K, M]) {
	*s = slot[K, M]{} // release the job's data to the garbage collector
	w.free = append(w.free, s)
	if w.count-w.busy() > maxIdle {
		w.count--
		w.tasks <- nil
	}
}

// close ends the workers once none is busy, and returns when all have ended.
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
		s.next = w.call(ctx, s.item)
		s.ended = time.Now()
		w.done <- s
	}
}

// call runs the job. If the job panics or ends its goroutine, call panics with the key in the message; the stack trace is still that of the
// job.
func (r *Runner[K, M]) call(ctx context.Context, item scheduler.Item[K, M]) scheduler.Next[M] {
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
	next := r.job(ctx, item)
	returned = true
	return next
}
