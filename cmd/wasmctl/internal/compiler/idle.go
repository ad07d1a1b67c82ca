// SPDX-License-Identifier: Apache-2.0

package compiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/load"
)

// patience is the time that a process may have almost no CPU time before it is restarted with
// another priority. A swap takes that much longer if another tenant spins.
const patience = 500 * time.Millisecond

// errStarved means that other processes left no CPU time.
var errStarved = errors.New("compiler: no CPU")

// starved reports whether a process got less CPU time than a lower priority alone would have given
// it on a busy machine.
func starved(used, elapsed time.Duration) bool { return used < elapsed/10 }

// whenIdle compiles in a process that gets only idle CPU time, so that no event waits for it. A
// module that spins leaves no idle time, but must not prevent its replacement. In this case, the
// error is errStarved.
func (c *Compiler) whenIdle(ctx context.Context, comp load.Compilation, workers int) (used time.Duration, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	used, err = c.process(ctx, comp, workers, func(pid int) {
		if !subprocess.OnlyIdle(pid) {
			subprocess.LowerPriority(pid)
			return
		}
		watching.Go(func() { watch(ctx, pid, stop) })
	})
	stop(nil)
	watching.Wait()
	return used, err
}

// watch stops a process that is starved, until ctx ends.
func watch(ctx context.Context, pid int, stop context.CancelCauseFunc) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for before := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		used, known := subprocess.CPUTime(pid)
		if known && starved(used-before, patience) {
			stop(errStarved)
			return
		}
		before = used
	}
}

// emptied removes the files that a killed process left in a directory.
func emptied(dir string) error {
	left, err := os.ReadDir(dir)
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", load.ErrCacheDir, err)
	}
	return nil
}
