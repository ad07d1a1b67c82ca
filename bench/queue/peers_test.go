// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// key is a queued key, with the size of a namespaced name.
type key struct{ namespace, name string }

func newKeys(n int) []key {
	keys := make([]key, n)
	for i := range keys {
		keys[i] = key{"default", fmt.Sprintf("web-%06d", i)}
	}
	return keys
}

// queue is the common subset of all peers, with client-go's names.
type queue interface {
	Add(k key)
	AddAfter(k key, d time.Duration)
	Get() (k key, shutdown bool)
	Done(k key)
	ShutDown()
}

// peer is a queue to compare. None of them records metrics.
type peer struct {
	name string
	new  func() queue
}

// schedulerQueue is the scheduler as used by its loop, including the clock. It is for one goroutine; the others are
// safe for concurrent use. Its Get does not wait, but returns when something is due.
type schedulerQueue struct {
	*scheduler.Scheduler[key, string]
}

func (q schedulerQueue) Add(k key) {
	q.Schedule(time.Now(), scheduler.Request[key, string]{Key: k})
}

func (q schedulerQueue) AddAfter(k key, d time.Duration) {
	now := time.Now()
	q.Schedule(now, scheduler.Request[key, string]{Key: k, At: now.Add(d)})
}

func (q schedulerQueue) Get() (key, bool) {
	for {
		if item, ok := q.Pop(time.Now()); ok {
			return item.Key, false
		}
	}
}

func (q schedulerQueue) ShutDown() {}

var ours = peer{"scheduler", func() queue {
	return schedulerQueue{scheduler.New[key, string](scheduler.Config[string]{})}
}}

var theirs = []peer{
	{"client-go", func() queue { return workqueue.NewTypedDelayingQueue[key]() }},
	{"client-go-ratelimited", func() queue {
		return rateLimited{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedItemBasedRateLimiter[key]())}
	}},
	{"priorityqueue", func() queue { return priorityqueue.New[key]("") }},
}

// rateLimited is a queue used by a controller that limits retries: each success is reported to the limiter.
type rateLimited struct {
	workqueue.TypedRateLimitingInterface[key]
}

func (q rateLimited) Done(k key) {
	q.Forget(k)
	q.TypedRateLimitingInterface.Done(k)
}
