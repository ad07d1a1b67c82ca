package watcher

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/internal/decay"
)

// Decoded counts bytes of objects, as the API server sent them, that were decoded
// for one user of watches. A watch that several subscriptions share counts for each
// in equal parts, so that the sum over all users is what was decoded. The zero value
// has counted nothing. It is safe for concurrent use.
type Decoded struct {
	mu    sync.Mutex
	total int64      // guarded by mu
	rate  decay.Rate // guarded by mu
}

// Read returns how many bytes have been counted, and how many each second of about
// the last minute.
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

// share counts what was decoded since the last time for the subscribers that there
// are.
func (w *sharedWatch) share() {
	n := w.decoded.Swap(0)
	if n == 0 || len(w.subscribers) == 0 {
		return
	}
	now, part := time.Now(), n/int64(len(w.subscribers))
	for i, s := range w.subscribers {
		if s.decoded == nil {
			continue
		}
		if i == 0 {
			s.decoded.add(now, n-part*int64(len(w.subscribers)-1)) // with the rest
		} else {
			s.decoded.add(now, part)
		}
	}
}
