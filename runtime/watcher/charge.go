// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"sync"
	"sync/atomic"
)

// Memory is an account of the process's memory that a Tenant charges. It must be safe for concurrent use.
type Memory interface {
	// Take charges n bytes, or returns an error if there is no memory.
	Take(n int64) error
	// Give returns n bytes that were taken.
	Give(n int64)
}

// chargeStep is the unit in which memory is taken, so that few changes of a cache take or give any.
const chargeStep = 1 << 20

// charge is the memory that a Tenant has taken for its objects. It follows their size within a few steps.
type charge struct {
	memory Memory // nil if nothing is charged

	mu    sync.Mutex
	taken atomic.Int64 // changed under mu
}

// cover takes memory for the given size of the objects, if it is more than what has been taken.
func (c *charge) cover(size int64) error {
	if c.memory == nil || size <= c.taken.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := inSteps(size) - c.taken.Load()
	if n <= 0 {
		return nil
	}
	if err := c.memory.Take(n); err != nil {
		return err
	}
	c.taken.Add(n)
	return nil
}

// release returns memory that the objects of the given size no longer need.
func (c *charge) release(size func() int64) {
	if !excessive(c.taken.Load(), size()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := size(); excessive(c.taken.Load(), now) {
		n := c.taken.Load() - inSteps(now)
		c.memory.Give(n)
		c.taken.Add(-n)
	}
}

// excessive reports whether memory should be returned. What a list replaces soon grows again, so a few steps are not returned.
func excessive(taken, size int64) bool {
	return taken > 0 && (size <= 0 || taken-size > 3*chargeStep)
}

func inSteps(size int64) int64 { return (max(0, size) + chargeStep - 1) / chargeStep * chargeStep }
