// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tick is the unit of /proc for the time of CPUs.
const tick = 10 * time.Millisecond

// stopwatch measures how long something takes that a process does, and how much of
// that time it may have waited for CPUs that others had: on a busy machine that is
// nothing to blame it for. On an idle one nothing is forgiven.
type stopwatch struct {
	pid        int
	start      time.Time
	busy, mine time.Duration            // of all CPUs, of the process
	queued     map[string]time.Duration // of the process and the test itself

	waited, used time.Duration // by the process, when it was last seen
	delay        time.Duration // what read has found last
}

func startWatch(tb testing.TB, pid int) *stopwatch {
	tb.Helper()
	return &stopwatch{pid: pid, start: time.Now(), busy: busy(tb), mine: cpuTime(pid), queued: queued(pid, os.Getpid())}
}

// read returns the time since the start, and the time for which others may have delayed the
// process: their computing time, but at most the time for which its threads were ready without
// running. The clock is the test's: its own delay before it observes the process counts too.
func (w *stopwatch) read(tb testing.TB) (took, delay time.Duration) {
	tb.Helper()
	took = time.Since(w.start)
	if mine := cpuTime(w.pid); mine > 0 { // it has not ended
		w.waited, w.used = max(w.waited, w.waitedSince(w.pid)), mine-w.mine
	}
	w.delay = max(w.delay, min(w.waited+w.waitedSince(os.Getpid()), busy(tb)-w.busy-w.used))
	return took, w.delay
}

// waitedSince is how long a process's threads were ready to run and did not, since
// the start.
func (w *stopwatch) waitedSince(pid int) (waited time.Duration) {
	for thread, d := range queued(pid) {
		waited += d - w.queued[thread]
	}
	return waited
}

// computed returns the computing time of the process since the start. Other processes do not extend
// it. An ended process has computed nothing.
func (w *stopwatch) computed() time.Duration { return cpuTime(w.pid) - w.mine }

// late returns an error text if a call exceeded a time limit, and otherwise "". The call may last
// longer only by the delay of others, and the process must not have computed for longer on all
// CPUs.
func (w *stopwatch) late(tb testing.TB, within time.Duration) string {
	tb.Helper()
	took, delay := w.read(tb)
	if took > within+delay {
		return fmt.Sprintf("it took %v, want %v, and %v in which others computed", took, within, delay)
	}
	if most := within * time.Duration(runtime.NumCPU()); w.computed() > most {
		return fmt.Sprintf("the process computed for %v, want %v at most", w.computed(), most)
	}
	return ""
}

// queued is how long each thread of processes was ready to run and had no CPU.
func queued(pids ...int) map[string]time.Duration {
	out := map[string]time.Duration{}
	var files []string
	for _, pid := range pids {
		of, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is good
		files = append(files, of...)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		fields := strings.Fields(string(b))
		if err != nil || len(fields) < 2 {
			continue // the thread has ended
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			out[file] = time.Duration(n)
		}
	}
	return out
}

// busy is how long all CPUs have computed.
func busy(tb testing.TB) time.Duration {
	tb.Helper()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		tb.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var sum time.Duration
	for i, f := range strings.Fields(line)[1:9] {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil && i != 3 && i != 4 { // not idle, not waiting for a disk
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// cpuTime returns the computing time of a process, or 0 without one.
func cpuTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick
}

// memoryOf returns the current resident memory of a process, and its peak since forgetPeak. The
// kernel records the peak, so nothing is missed between two samples.
func memoryOf(tb testing.TB, pid int) (now, peak int64) {
	tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // it ended before the file was opened, or read
		return 0, 0
	}
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return now, peak
}

// forgetPeak has memoryOf count from now on. Where the system does not let us, the
// peak is that of all the process's life, which is more.
func forgetPeak(pid int) {
	_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0o200)
}
