package host

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	watchEvery = time.Second
	// watchGrace is how much longer than twice its timeout a call may take: a
	// machine that is short of CPUs for a moment is no reason for a restart.
	watchGrace = time.Second
	maxStacks  = 16 << 20 // bytes of stacks of all goroutines that are searched
	maxReport  = 16 << 10 // bytes of the one that is reported
)

// Watchdog notices calls into guests that do not end with their time: those that
// take more than twice their timeout. Every such call is a bug of the host, as
// whatever a guest does is interrupted. One serves all modules of a process. All
// methods are safe for concurrent use.
type Watchdog struct {
	base time.Time

	mu sync.Mutex
	// instances has, for each instance there is, which of its calls was reported:
	// the value of overdue; guarded by mu.
	instances map[*instance]int64
}

// NewWatchdog returns a watchdog; Run reports what it sees.
func NewWatchdog() *Watchdog {
	return &Watchdog{base: time.Now(), instances: map[*instance]int64{}}
}

// Run logs each call that does not end, once, with the stack of its goroutine,
// until ctx ends.
func (w *Watchdog) Run(ctx context.Context) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, in := range w.unreported() {
				in.gen.log.Error("BUG: a call does not end with its time; report this, with the stack", "in", in.where(), "stack", stackOf(in))
			}
		}
	}
}

// Check returns an error that names the calls that do not end, or nil. It does not
// wait.
func (w *Watchdog) Check() error {
	var stuck []string
	w.each(func(in *instance, _ int64) {
		stuck = append(stuck, fmt.Sprintf("module %s in %s", in.gen.name, in.where()))
	})
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return fmt.Errorf("calls do not end with their time: %s", strings.Join(stuck, "; "))
}

func (w *Watchdog) unreported() (list []*instance) {
	w.each(func(in *instance, overdue int64) {
		if w.instances[in] != overdue {
			w.instances[in] = overdue
			list = append(list, in)
		}
	})
	return list
}

// each calls f, under the lock, for each instance whose call does not end.
func (w *Watchdog) each(f func(in *instance, overdue int64)) {
	now := int64(time.Since(w.base))
	w.mu.Lock()
	defer w.mu.Unlock()
	for in := range w.instances {
		if overdue := in.overdue.Load(); overdue > 0 && now > overdue {
			f(in, overdue)
		}
	}
}

// add makes an instance known, and remove forgets it. A nil Watchdog watches
// nothing.
func (w *Watchdog) add(in *instance) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[in] = 0
}

func (w *Watchdog) remove(in *instance) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.instances, in)
}

// begin notes the beginning of a call, and end its end.
func (w *Watchdog) begin(in *instance, now time.Time, limit time.Duration) {
	const most = 1 << 60
	if w != nil {
		in.overdue.Store(int64(now.Sub(w.base) + 2*min(limit, most) + watchGrace))
	}
}

func (w *Watchdog) end(in *instance) {
	if w != nil {
		in.overdue.Store(0)
	}
}

// where names the host function that the instance is in.
func (in *instance) where() string {
	if name := in.host.name.Load(); name != nil {
		return *name
	}
	return "its own code"
}

// stackOf returns the stack of the goroutine that runs an instance. A goroutine
// is known by the instance's address among the arguments of its functions: to
// mark it instead would cost each call something.
func stackOf(in *instance) string {
	buf := make([]byte, 256<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) && n < maxStacks {
		buf = make([]byte, 4*len(buf))
		n = runtime.Stack(buf, true)
	}
	mark := fmt.Appendf(nil, "(*instance).guarded(%p", in)
	for stack := range bytes.SplitSeq(buf[:n], []byte("\n\n")) {
		if bytes.Contains(stack, mark) {
			return string(stack[:min(len(stack), maxReport)])
		}
	}
	return "not found"
}
