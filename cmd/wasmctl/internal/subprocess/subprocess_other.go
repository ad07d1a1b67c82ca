//go:build !linux

package subprocess

import (
	"os"
	"os/exec"
	"time"
)

// self is this binary.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func setGroup(*exec.Cmd) {}

// LowerPriority does nothing: only Linux has it here.
func LowerPriority(int) {}

// OnlyIdle is always false: only Linux has it here.
func OnlyIdle(int) bool { return false }

// CPUTime is never known: only Linux says so here.
func CPUTime(int) (time.Duration, bool) { return 0, false }

func enforce(Limits) error { return nil }

// Killed is always false: only Linux says so here.
func Killed(*os.ProcessState) bool { return false }
