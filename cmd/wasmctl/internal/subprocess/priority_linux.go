// SPDX-License-Identifier: Apache-2.0

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

// LowerPriority gives all threads of a process the CPU time that others leave, and at least a tenth
// of a CPU. A failure is ignored.
func LowerPriority(pid int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, niceness)
}

// OnlyIdle gives all threads of a process only the CPU time that others leave, which may be almost
// none. Unlike with LowerPriority, Linux considers a CPU that runs such a thread as idle. OnlyIdle
// reports whether this worked. To undo it, the process would need rights that it may not have.
func OnlyIdle(pid int) bool {
	known := map[int]bool{}
	for more := true; more; { // a new thread inherits from its creator
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

// CPUTime returns the CPU time that a process has used, if it is known.
func CPUTime(pid int) (used time.Duration, known bool) {
	var t unix.Timespec
	clock := int32(^pid)<<3 | 2 // CPUCLOCK_SCHED: clock_getcpuclockid(3)
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
