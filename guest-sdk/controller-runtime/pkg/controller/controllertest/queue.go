// SPDX-License-Identifier: Apache-2.0

// Package controllertest has a queue for the tests of handlers.
package controllertest

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
)

// Queue is a TypedQueue of requests.
type Queue = TypedQueue[queue.Item]

// TypedQueue adds all items immediately, including delayed and rate-limited
// ones.
type TypedQueue[request comparable] struct {
	workqueue.TypedInterface[request]
	AddedRateLimitedLock sync.Mutex
	// AddedRatelimited has the arguments of AddRateLimited.
	AddedRatelimited []any
}

// AddAfter adds item.
func (q *TypedQueue[request]) AddAfter(item request, _ time.Duration) { q.Add(item) }

// AddRateLimited adds item, and records it in AddedRatelimited.
func (q *TypedQueue[request]) AddRateLimited(item request) {
	q.AddedRateLimitedLock.Lock()
	defer q.AddedRateLimitedLock.Unlock()
	q.AddedRatelimited = append(q.AddedRatelimited, item)
	q.Add(item)
}

// Forget has no effect.
func (*TypedQueue[request]) Forget(request) {}

// NumRequeues returns 0.
func (*TypedQueue[request]) NumRequeues(request) int { return 0 }
