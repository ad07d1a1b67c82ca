// SPDX-License-Identifier: Apache-2.0

package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/load"
)

// All threads of a process come after the guests, those that it starts later included.
func TestCompiler_AProcessComesLast(t *testing.T) {
	const nice, policy = 16, 38 // fields of proc_pid_stat(5) behind the name
	for name, tc := range map[string]struct {
		lower func(pid int)
		field int
		want  string
	}{
		"lower priority": {subprocess.LowerPriority, nice, "10"},
		"only idle": {func(pid int) {
			if !subprocess.OnlyIdle(pid) {
				t.Error("the system has no such policy")
			}
		}, policy, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, in := startBomb(t, tc.lower)
			proc := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
			wantConfined(t, proc)
			threads := must(filepath.Glob(proc + "/task/*/stat"))
			if len(threads) == 0 {
				t.Error("no threads")
			}
			for _, path := range threads {
				stat, err := os.ReadFile(path) //nolint:gosec // of /proc
				if err != nil {
					continue // it has ended
				}
				_, after, _ := strings.Cut(string(stat), ") ")
				if got := strings.Fields(after)[tc.field]; got != tc.want {
					t.Errorf("%s: got %s, want %s", path, got, tc.want)
				}
			}
			if used, known := subprocess.CPUTime(cmd.Process.Pid); !known || used <= 0 {
				t.Errorf("has used %v of the CPUs, known: %v", used, known)
			}
			_ = in.Close()
			_ = cmd.Wait()
		})
	}
}

// A process that gets no CPU is started again, in an empty directory, and then finishes.
func TestCompiler_AProcessWithoutCPUIsStartedAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has processes that run when a CPU is idle")
	}
	comp := load.Compilation{Dir: t.TempDir(), Code: small(), Workers: 1, Yield: true}
	half := filepath.Join(comp.Dir, "wazero-x", "half")
	if err := os.MkdirAll(filepath.Dir(half), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		first := child(t, os.Getpid())
		// Before it runs its own program, Start waits for it.
		for t.Context().Err() == nil && string(must(os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", first)))) != "wasmctl\x00"+Command+"\x00" {
			runtime.Gosched()
		}
		_ = syscall.Kill(first, syscall.SIGSTOP)
	}()
	if err := New(Limits{}).Compile(t.Context(), comp); err != nil {
		t.Fatal(err)
	}
	if files := must(filepath.Glob(filepath.Join(comp.Dir, "*", "*"))); len(files) != 1 || files[0] == half {
		t.Errorf("files %q, want one", files)
	}
}

// What has the share of a low priority is not started again.
func TestCompiler_StarvedIsLessThanATenth(t *testing.T) {
	for used, want := range map[time.Duration]bool{0: true, 99 * time.Millisecond: true, 100 * time.Millisecond: false, time.Minute: false} {
		if got := starved(used, time.Second); got != want {
			t.Errorf("%v of a second: got %v", used, got)
		}
	}
}
