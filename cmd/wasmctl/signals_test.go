// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
)

// hangs is a command that ignores its context: it spins, and its log has no reader.
func hangs() {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }()
	_ = untilStopped(context.Background(), &runOptions{process: flags.Process{LogFormat: "text"}, streams: streams{err: w}}, func(_ context.Context, log *slog.Logger, _ <-chan struct{}) error {
		fmt.Println("ready")
		go log.Info("blocks, with the lock of the log")
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	})
}

// follows is a command that prints continuously and ignores its context.
func follows() {
	_, release := followContext(context.Background())
	defer release()
	fmt.Println("ready")
	select {}
}

// TestSignals_TheSecondEndsAProcessThatHangs: after the second signal, a process that hangs ends with
// the documented exit code.
func TestSignals_TheSecondEndsAProcessThatHangs(t *testing.T) {
	for _, command := range []string{"wasmctl-hangs", "wasmctl-follows"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(fmt.Sprint(command, " ", sig), func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(command)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
				_, err = io.ReadFull(out, make([]byte, len("ready")))
				go func() {
					_ = cmd.Wait() // the exit code is checked below
					close(ended)
				}()
				if err != nil {
					t.Fatal(err)
				}
				_ = cmd.Process.Signal(sig) // fails if the process has ended, which is checked below
				select {
				case <-ended:
					t.Fatal("ended at the first signal")
				case <-time.After(time.Millisecond): // two signals that are pending at the same time count as one
				}
				endAtSignals(cmd, ended, sig)
				if got := cmd.ProcessState.ExitCode(); got != exitForced {
					t.Errorf("exit code %d, want %d", got, exitForced)
				}
			})
		}
	}
}

// endAtSignals repeats a signal until the process has ended.
func endAtSignals(cmd *exec.Cmd, ended <-chan struct{}, sig os.Signal) {
	again := time.NewTicker(50 * time.Millisecond) // two signals that are pending at the same time count as one
	defer again.Stop()
	for {
		_ = cmd.Process.Signal(sig) // fails if the process has ended
		select {
		case <-ended:
			return
		case <-again.C:
		}
	}
}

// TestSignals_HaveOneTaker: only takeSignals handles the signals that end a process, so all commands
// end in the same way.
func TestSignals_HaveOneTaker(t *testing.T) {
	takes := regexp.MustCompile(`signal\.(Notify\([^)]*(Interrupt|SIGINT|SIGTERM)|NotifyContext|Ignore|Reset)`)
	var found []string
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if takes.Match(text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) != 1 || found[0] != "signals.go" {
		t.Errorf("%v take signals, want signals.go alone; %v", found, err)
	}
}
