// SPDX-License-Identifier: Apache-2.0

package declare

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

var _ priorityqueue.PriorityQueue[int] = (*collector[int])(nil)

// collector is the queue that handlers write to. The real queue is in the host,
// so collector only collects the items, and ignores delays.
type collector[request comparable] struct{ items []request }

// Add collects a request.
func (c *collector[request]) Add(item request) { c.items = append(c.items, item) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (c *collector[request]) AddWithOpts(_ priorityqueue.AddOpts, items ...request) {
	c.items = append(c.items, items...)
}

// GetWithPriority returns no item, like Get.
func (c *collector[request]) GetWithPriority() (item request, priority int, shutdown bool) {
	return item, 0, true
}

// AddAfter collects a request.
func (c *collector[request]) AddAfter(item request, _ time.Duration) { c.Add(item) }

// AddRateLimited collects a request.
func (c *collector[request]) AddRateLimited(item request) { c.Add(item) }

// Forget has no effect.
func (c *collector[request]) Forget(request) {}

// NumRequeues returns 0.
func (c *collector[request]) NumRequeues(request) int { return 0 }

// Len returns the number of requests.
func (c *collector[request]) Len() int { return len(c.items) }

// Get returns no item, because the host runs the requests.
func (c *collector[request]) Get() (item request, shutdown bool) { return item, true }

// Done has no effect.
func (c *collector[request]) Done(request) {}

// ShutDown has no effect.
func (c *collector[request]) ShutDown() {}

// ShutDownWithDrain has no effect.
func (c *collector[request]) ShutDownWithDrain() {}

// ShuttingDown returns false.
func (c *collector[request]) ShuttingDown() bool { return false }
