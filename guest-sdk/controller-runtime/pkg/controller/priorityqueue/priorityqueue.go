// SPDX-License-Identifier: Apache-2.0

// Package priorityqueue has the queue type of handlers. In a module, the host
// has the queue and its own priorities.
package priorityqueue

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
)

// AddOpts control when items run. In a module they have no effect.
type AddOpts struct {
	After       time.Duration
	RateLimited bool
	Priority    *int
}

// PriorityQueue is the queue that handlers of a module receive.
type PriorityQueue[T comparable] interface {
	workqueue.TypedRateLimitingInterface[T]
	// AddWithOpts adds items.
	AddWithOpts(o AddOpts, items ...T)
	// GetWithPriority returns an item.
	GetWithPriority() (item T, priority int, shutdown bool)
}

// Opts are the options of a queue.
type Opts[T comparable] struct {
	RateLimiter    workqueue.TypedRateLimiter[T]
	MetricProvider workqueue.MetricsProvider
	Log            logr.Logger
}

// Opt changes the options.
type Opt[T comparable] func(*Opts[T])

// New returns a queue without priorities. It is for tests, and for the NewQueue
// option of a Controller, which a module does not call.
func New[T comparable](name string, o ...Opt[T]) PriorityQueue[T] {
	opts := Opts[T]{RateLimiter: workqueue.DefaultTypedControllerRateLimiter[T]()}
	for _, opt := range o {
		opt(&opts)
	}
	config := workqueue.TypedRateLimitingQueueConfig[T]{Name: name, MetricsProvider: opts.MetricProvider}
	return queue[T]{workqueue.NewTypedRateLimitingQueueWithConfig(opts.RateLimiter, config)}
}

type queue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
}

// AddWithOpts implements PriorityQueue.
func (q queue[T]) AddWithOpts(o AddOpts, items ...T) {
	for _, item := range items {
		switch {
		case o.RateLimited:
			q.AddRateLimited(item)
		case o.After > 0:
			q.AddAfter(item, o.After)
		default:
			q.Add(item)
		}
	}
}

// GetWithPriority implements PriorityQueue.
func (q queue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	item, shutdown = q.Get()
	return item, 0, shutdown
}
