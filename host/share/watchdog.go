// SPDX-License-Identifier: Apache-2.0

package share

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	watchEvery = time.Second
	// WatchGrace is added to twice the timeout of a call before the call counts as stuck: a
	// machine that is short of CPUs for a moment is no reason for a restart.
	WatchGrace = time.Second
)

// Watchdog notices calls into guests that take more than twice their timeout. Every such
// call is a bug of the host, because a guest is interrupted whatever it does. One Watchdog
// serves all modules of a process. All methods are safe for concurrent use; a nil Watchdog
// watches nothing.
type Watchdog struct {
	base time.Time

	mu sync.Mutex
	// instances maps each instance to the value of Overdue of the last call that was
	// reported; guarded by mu.
	instances map[Watched]int64
}

// Watched is an instance whose calls a Watchdog watches. All methods are safe for
// concurrent use.
type Watched interface {
	// Overdue returns the value of Due for the call that runs, and 0 if none runs.
	Overdue() int64
	// Where names the module and the place in which the call is.
	Where() string
	// ReportStuck logs that the call does not end, with its stack.
	ReportStuck()
}

// NewWatchdog returns a watchdog; Run reports what it finds.
func NewWatchdog() *Watchdog {
	return &Watchdog{base: time.Now(), instances: map[Watched]int64{}}
}

// Run reports each call that does not end, once, until ctx ends.
func (w *Watchdog) Run(ctx context.Context) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, in := range w.unreported() {
				in.ReportStuck()
			}
		}
	}
}

// Check returns an error that names the calls that do not end, or nil. It does not wait.
func (w *Watchdog) Check() error {
	var stuck []string
	w.each(func(in Watched, _ int64) { stuck = append(stuck, in.Where()) })
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return fmt.Errorf("calls do not end with their time: %s", strings.Join(stuck, "; "))
}

func (w *Watchdog) unreported() (list []Watched) {
	w.each(func(in Watched, overdue int64) {
		if w.instances[in] != overdue {
			w.instances[in] = overdue
			list = append(list, in)
		}
	})
	return list
}

// each calls f, while it holds mu, for each instance whose call does not end.
func (w *Watchdog) each(f func(in Watched, overdue int64)) {
	now := int64(time.Since(w.base))
	w.mu.Lock()
	defer w.mu.Unlock()
	for in := range w.instances {
		if overdue := in.Overdue(); overdue > 0 && now > overdue {
			f(in, overdue)
		}
	}
}

// Add makes an instance known, and Remove forgets it.
func (w *Watchdog) Add(in Watched) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[in] = 0
}

// Remove forgets an instance.
func (w *Watchdog) Remove(in Watched) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.instances, in)
}

// Due returns when a call that begins now and may take limit is stuck, on the watchdog's
// clock. It is never 0.
func (w *Watchdog) Due(now time.Time, limit time.Duration) int64 {
	const most = 1 << 60
	if w == nil {
		return most
	}
	return int64(now.Sub(w.base) + 2*min(limit, most) + WatchGrace)
}
