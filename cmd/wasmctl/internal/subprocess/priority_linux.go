package subprocess

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const niceness = 10

// LowerPriority lets all threads of a process have what others leave of the
// CPUs, and a tenth of a CPU where those leave nothing. That it cannot be had is no reason
// not to start.
func LowerPriority(pid int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, niceness)
}

// OnlyIdle lets all threads of a process have what others leave of the CPUs, and
// nearly nothing where those leave nothing. Unlike with LowerPriority, Linux takes a CPU
// that runs such a thread for a free one. It reports whether the process has that now. The
// process cannot go back without rights that we may not have.
func OnlyIdle(pid int) bool {
	known := map[int]bool{}
	for more := true; more; { // a new thread is like the one that made it
		more = false
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return false
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || known[id] {
				continue
			}
			err = unix.SchedSetAttr(id, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return false
			}
			known[id], more = true, true
		}
	}
	return true
}

// CPUTime is what a process has used of the CPUs, as far as it is known.
func CPUTime(pid int) (used time.Duration, known bool) {
	var t unix.Timespec
	clock := int32(^pid)<<3 | 2 // CPUCLOCK_SCHED: clock_getcpuclockid(3)
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
