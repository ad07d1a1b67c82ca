// SPDX-License-Identifier: Apache-2.0

package compiler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// TestMain runs the compiling process if it is started as one, like wasmctl's main.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bomb is a module that takes long to compile, and much memory.
func bomb() []byte { return enginetest.Laborious(20, 20_000, 0) }

// small is a guest that is just too large for a host to compile it itself.
func small() []byte { return enginetest.Laborious(1, 1_000, 0) }

// compile compiles a bomb within limits.
func compile(t *testing.T, ctx context.Context, limits Limits) error { //nolint:revive // the test is what it is about
	t.Helper()
	return New(limits).Compile(ctx, load.Compilation{Dir: t.TempDir(), Code: bomb(), Workers: 1})
}

// A module that the host loads runs as one that was compiled in its process, and
// is compiled once.
func TestCompiler_IsAskedOnceForEachModule(t *testing.T) {
	c := New(Limits{Memory: 4 << 30, Time: time.Minute})
	asked := 0
	cfg := host.Config{Code: load.Options{CacheDir: t.TempDir(), Compiler: func(ctx context.Context, job load.Compilation) error {
		asked++
		return c.Compile(ctx, job)
	}}}
	for range 2 {
		m, err := host.Load(t.Context(), small(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		guest, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guest.Reconcile(t.Context(), &abi.Request{ID: "1", Key: abi.Key{Name: "x"}, Object: []byte{0x80}}); err != nil {
			t.Error(err)
		}
		release()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	cfg.Code.CacheDir = ""
	m, err := host.Load(t.Context(), small(), cfg)
	if err != nil || asked != 2 {
		t.Fatalf("without a cache: asked %d times in all: %v", asked, err)
	}
	_ = m.Close(context.Background())
}

// The first module of a tenant does not wait for those of another tenant, which have all CPUs.
func TestCompiler_TenantsTakeTurns(t *testing.T) {
	c := New(Limits{})
	for range runtime.GOMAXPROCS(0) {
		if err := c.cpus.Take(t.Context(), "another"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Compile(t.Context(), load.Compilation{Tenant: "a", Dir: t.TempDir(), Code: wasm.Empty, Workers: 1}); err != nil {
		t.Error(err)
	}
}

// A cache directory that cannot be used costs time, never the module.
func TestCompiler_ADirectoryThatCannotBeUsedIsNoFaultOfTheModule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := New(Limits{}).Compile(t.Context(), load.Compilation{Dir: filepath.Join(file, "below"), Code: wasm.Empty, Workers: 1})
	if !errors.Is(err, load.ErrCacheDir) || errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("got %v, want ErrCacheDir alone", err)
	}
	var log bytes.Buffer
	m, err := host.Load(t.Context(), small(), host.Config{
		Code: load.Options{CacheDir: filepath.Join(file, "below"), Compiler: New(Limits{}).Compile}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil || !strings.Contains(log.String(), "cannot use the compilation cache") {
		t.Fatalf("got %v, and log %q", err, log.String())
	}
	_ = m.Close(context.Background())
}

// What takes too much is the fault of the module, and ends by itself.
func TestCompiler_BoundsTimeAndMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the system enforces bounds on Linux only")
	}
	for want, limits := range map[string]Limits{
		"--compile-time 1s":     {Time: time.Second},
		"--compile-memory 64Mi": {Memory: 64 << 20},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			err := compile(t, t.Context(), limits)
			if !errors.Is(err, load.ErrInvalidModule) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want one that says %q", err, want)
			}
		})
	}
}

// A context that ends ends the process, whatever it is doing.
func TestCompiler_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not wanted any longer")
	go func() {
		child(t, os.Getpid())
		cancel(why)
	}()
	if err := compile(t, ctx, Limits{}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// A process has nothing of our environment, and no longer life than ours.
func TestCompiler_AProcessIsAlone(t *testing.T) {
	t.Setenv("WASMCTL_A_TOKEN", "secret")
	cmd, in := startBomb(t, func(int) {})
	proc := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	wantConfined(t, proc)
	environ, err := os.ReadFile(proc + "/environ")
	if err != nil || !bytes.Equal(environ, []byte("GOMAXPROCS=1\x00")) {
		t.Errorf("environment %q: %v", environ, err)
	}
	_ = in.Close() // as the system does when this process dies
	if err := cmd.Wait(); err == nil {
		t.Error("it has compiled to the end")
	}
}

// startBomb starts a process that compiles for long. lower is called before it has its
// job.
func startBomb(t *testing.T, lower func(pid int)) (*exec.Cmd, io.Closer) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	cmd := subprocess.Command(t.Context(), Command, 1)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lower(cmd.Process.Pid)
	code := bomb()
	if err := json.NewEncoder(in).Encode(job{Dir: t.TempDir(), Size: len(code), Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(code); err != nil {
		t.Fatal(err)
	}
	return cmd, in
}

// wantConfined waits until a process has given up its rights. Otherwise the test fails at its
// timeout.
func wantConfined(t *testing.T, proc string) {
	t.Helper()
	for t.Context().Err() == nil {
		status, err := os.ReadFile(proc + "/status") //nolint:gosec // of /proc
		if err != nil {
			t.Fatal(err)
		}
		if s := string(status); strings.Contains(s, "NoNewPrivs:\t1") && strings.Contains(s, "Seccomp:\t2") {
			return
		}
		runtime.Gosched()
	}
}

// For any input on stdin, a process explains its purpose and ends.
func TestServe_TakesNoOtherInput(t *testing.T) {
	for _, in := range []string{"", "\n", "{}\n", "[]\n", `{"dir":"x","size":-1}` + "\n", strings.Repeat("x", 1<<20)} {
		if err := Serve(t.Context(), strings.NewReader(in), io.Discard); !errors.Is(err, ErrNoJob) {
			t.Errorf("%.20q: got %v", in, err)
		}
	}
	if err := Serve(t.Context(), strings.NewReader(`{"dir":"x","size":5}`+"\nabc"), io.Discard); err == nil {
		t.Error("half a module is compiled")
	}
}

// child waits for a process that pid has started.
func child(t *testing.T, pid int) (child int) {
	t.Helper()
	for t.Context().Err() == nil {
		for _, path := range must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))) {
			b, err := os.ReadFile(path) //nolint:gosec // of /proc
			if n, _ := fmt.Sscan(string(b), &child); err == nil && n > 0 {
				return child
			}
		}
		runtime.Gosched()
	}
	return 0
}

func must[T any](v T, _ error) T { return v }
