// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/internal/decay"
)

// Decoded counts the bytes of objects, in the API server's encoding, that were decoded for one user of watches. If several subscriptions
// share a watch, each counts an equal part, so that the sum over all users is the total. The zero value is ready to use. It is safe for
// concurrent use.
type Decoded struct {
	mu    sync.Mutex
	total int64      // guarded by mu
	rate  decay.Rate // guarded by mu
}

// Read returns the total number of bytes, and the rate per second over about the last minute.
func (d *Decoded) Read(now time.Time) (total int64, perSecond float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total, d.rate.Read(now)
}

func (d *Decoded) add(now time.Time, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total += n
	d.rate.Add(now, float64(n))
}

// share distributes the bytes decoded since the last call among the current subscribers. While there are none, the bytes are kept for the
// first one: the list can arrive before the subscription that started the watch joins.
func (w *sharedWatch) share() {
	if len(w.subscribers) == 0 {
		return
	}
	n := w.decoded.Swap(0)
	if n == 0 {
		return
	}
	now, part := time.Now(), n/int64(len(w.subscribers))
	for i, s := range w.subscribers {
		if s.decoded == nil {
			continue
		}
		if i == 0 {
			s.decoded.add(now, n-part*int64(len(w.subscribers)-1)) // including the remainder
		} else {
			s.decoded.add(now, part)
		}
	}
}
