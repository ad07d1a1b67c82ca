// SPDX-License-Identifier: Apache-2.0

package guestprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/conformance"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// parentCommand starts a process that starts a guest process and prints its number.
const parentCommand = "parent-of-guests"

// TestMain runs a guest process if it is started as one, like wasmctl's main. A special hardening
// mode makes it hostile.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		in, err := io.ReadAll(os.Stdin)
		var j job
		if err == nil {
			err = json.Unmarshal(in, &j)
		}
		if how, hostile := strings.CutPrefix(string(j.Harden), "hostile:"); hostile && err == nil {
			beHostile(how)
		}
		if err == nil {
			err = Serve(bytes.NewReader(in))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == parentCommand {
		p, err := New(Config{CPUs: 1}).Of("").Process(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Stats().PID)
		select {}
	}
	os.Exit(m.Run())
}

// beHostile accepts connections, reports that code is loaded, and then misbehaves.
func beHostile(how string) {
	control, err := connOf(controlFD)
	if err != nil {
		panic(err)
	}
	for first := true; ; first = false {
		conn, err := accept(control)
		if err != nil {
			os.Exit(0)
		}
		if first { // frameDone, with no trouble
			_, _ = conn.Write([]byte{4, 0, 0, 0, 5, 0, 0, 0, 0})
			continue
		}
		go func() {
			switch how {
			case "garbage":
				_, _ = conn.Write(bytes.Repeat([]byte{0xa5}, 1<<20))
			case "flood": // of log lines
				for {
					if _, err := conn.Write([]byte{9, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 'x'}); err != nil {
						return
					}
				}
			case "silence":
			case "exit":
				os.Exit(3)
			}
		}()
	}
}

func load(tb testing.TB, code []byte, cfg host.Config) *host.Module {
	tb.Helper()
	m, err := host.Load(tb.Context(), code, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// reconcile runs a guest once, with an object of one byte.
func reconcile(tb testing.TB, m *host.Module, mode byte) error {
	tb.Helper()
	g, release, err := m.Acquire(tb.Context())
	if err != nil {
		return err
	}
	defer release()
	_, err = g.Reconcile(tb.Context(), &abi.Request{ID: "1", Key: abi.Key{Name: "x"}, Object: []byte{mode}})
	return err
}

// pid is the process of a module.
func pid(tb testing.TB, m *host.Module) int {
	tb.Helper()
	st, ok := m.GuestProcess()
	if !ok || st.PID == os.Getpid() || st.Memory == 0 {
		tb.Fatalf("the module is not in a process of its own: %+v", st)
	}
	return st.PID
}

// gone waits until a process has ended.
func gone(tb testing.TB, pid int) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); syscall.Kill(pid, 0) == nil; {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); bytes.Contains(b, []byte(") Z ")) {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("process %d lives on", pid)
		}
		runtime.Gosched()
	}
}

// A guest in a process of its own does all that the ABI asks for, but for the
// clocks, which the cases set and which are its own.
func TestGuests_ConformToTheABI(t *testing.T) {
	out := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	build.Dir = "../../../../host/conformance/guests/go"
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	code, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	classes := New(Config{CPUs: 2, Harden: harden.Auto})
	g, err := conformance.OpenIsolated(t.Context(), code, "", classes.Of("conformance"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close(context.Background()) }()
	for _, c := range conformance.Cases() {
		clock := strings.HasPrefix(c.ID, "clock.")
		if got := g.Try(t.Context(), c); got.Result == conformance.Fail && !clock {
			t.Error(got)
		}
	}
}

// Where the system kills a guest process, a run that it was in fails as after a
// trap, and the next has another process.
func TestProcess_KilledInTheMiddle(t *testing.T) {
	m := load(t, wasm.WASI, host.Config{Isolation: New(Config{CPUs: 1}).Of("")})
	before := pid(t, m)
	g, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	failed := make(chan error)
	go func() { // it sleeps for an hour
		_, err := g.Reconcile(t.Context(), &abi.Request{ID: "1", Key: abi.Key{Name: "x"}, Object: []byte{6}})
		failed <- err
	}()
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = <-failed
	var ce *abi.CallError
	if !errors.As(err, &ce) || ce.Kind != abi.FailureTrap || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("got %v", err)
	}
	if err := reconcile(t, m, 0); err != nil {
		t.Error(err)
	}
	if after := pid(t, m); after == before {
		t.Error("it is the same process")
	}
}

// A guest process that breaks the rules, floods its host or is silent costs its
// own runs, and nothing else.
func TestProcess_Hostile(t *testing.T) {
	for _, how := range []string{"garbage", "flood", "silence", "exit"} {
		t.Run(how, func(t *testing.T) {
			start := time.Now()
			m, err := host.Load(t.Context(), wasm.Empty, host.Config{
				Isolation: New(Config{CPUs: 1, Harden: harden.Mode("hostile:" + how)}).Of(""), Limits: share.Limits{Timeout: 500 * time.Millisecond},
			})
			if err == nil {
				t.Fatalf("it was loaded: %v", m)
			}
			if _, ok := errors.AsType[*abi.CallError](err); !ok {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A process that has ended between two runs costs neither of them.
func TestProcess_KilledBetweenRuns(t *testing.T) {
	m := load(t, wasm.Empty, host.Config{Isolation: New(Config{CPUs: 1}).Of("")})
	before := pid(t, m)
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := m.GuestProcess(); !ok {
			break
		}
	}
	if err := reconcile(t, m, 0); err != nil || pid(t, m) == before {
		t.Errorf("process %d, was %d: %v", pid(t, m), before, err)
	}
}

// A process that dies again and again is started again ever later.
func TestIsolation_WaitsBetweenProcesses(t *testing.T) {
	if pause(1) != 0 || pause(2) != firstPause || pause(3) != 2*firstPause || pause(100) != mostPause {
		t.Errorf("got %v, %v, %v, %v", pause(1), pause(2), pause(3), pause(100))
	}
	iso := New(Config{CPUs: 1}).Of("")
	for range 3 {
		p, err := iso.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Kill(errors.New("a test")) // which is the error
		p.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := iso.Process(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Modules of one class share a process, and others do not. It ends with the last
// of them.
func TestClasses_ShareAProcess(t *testing.T) {
	classes := New(Config{CPUs: 1})
	a := load(t, wasm.Empty, host.Config{Isolation: classes.Of("tenant")})
	b, err := host.Load(t.Context(), wasm.WASI, host.Config{Isolation: classes.Of("tenant")})
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, wasm.Empty, host.Config{Isolation: classes.Of("")})
	d, err := host.Load(t.Context(), wasm.Empty, host.Config{Isolation: classes.Of("")})
	if err != nil {
		t.Fatal(err)
	}
	if pid(t, a) != pid(t, b) || pid(t, a) == pid(t, c) || pid(t, c) == pid(t, d) {
		t.Errorf("got %d, %d, %d, %d", pid(t, a), pid(t, b), pid(t, c), pid(t, d))
	}
	was := pid(t, d)
	for _, m := range []*host.Module{b, d} {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gone(t, was)
	if err := reconcile(t, a, 0); err != nil {
		t.Error(err)
	}
}

// A swap loads the next code in the same process.
func TestProcess_Swap(t *testing.T) {
	m := load(t, wasm.Empty, host.Config{Isolation: New(Config{CPUs: 1}).Of("")})
	before := pid(t, m)
	c, err := m.Prepare(t.Context(), wasm.WASI, nil)
	if err == nil {
		err = c.Promote(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := reconcile(t, m, 0); err != nil || pid(t, m) != before {
		t.Errorf("process %d, was %d: %v", pid(t, m), before, err)
	}
}

// A guest process has nothing of ours: no environment, and no files but its
// sockets.
func TestProcess_HasNothing(t *testing.T) {
	t.Setenv("WASMCTL_A_TOKEN", "secret")
	m := load(t, wasm.Empty, host.Config{Isolation: New(Config{CPUs: 1, Harden: harden.Off}).Of("")}) // which hides it
	proc := fmt.Sprintf("/proc/%d", pid(t, m))
	env, err := os.ReadFile(proc + "/environ")
	if err != nil || string(env) != "GOMAXPROCS=2\x00" {
		t.Errorf("environment %q, %v", env, err)
	}
	files, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		to, _ := os.Readlink(proc + "/fd/" + f.Name())
		if !strings.HasPrefix(to, "socket:") && !strings.HasPrefix(to, "pipe:") && to != "/dev/null" && !strings.HasPrefix(to, "anon_inode:") &&
			!strings.HasPrefix(to, "/sys/fs/cgroup/cpu") { // by which Go's runtime knows how many CPUs there are
			t.Errorf("file %s is %s", f.Name(), to)
		}
	}
}

// A guest process has given up system calls and privileges on each of its threads,
// and where Landlock is there, its files.
func TestProcess_IsHardened(t *testing.T) {
	m := load(t, wasm.Empty, host.Config{Isolation: New(Config{CPUs: 1, Harden: harden.Auto}).Of("")})
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid(t, m)))
	for _, path := range threads {
		status, err := os.ReadFile(path) //nolint:gosec // of /proc
		if err == nil && (!strings.Contains(string(status), "Seccomp:\t2\n") || !strings.Contains(string(status), "NoNewPrivs:\t1\n")) {
			t.Errorf("%s:\n%s", path, status)
		}
	}
	if len(threads) == 0 {
		t.Error("no threads")
	}
	if err := reconcile(t, m, 0); err != nil {
		t.Error(err)
	}
}

// status returns a field of the status of a process.
func status(tb testing.TB, pid int, field string) []string {
	tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+field+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
}

// A guest process sees no other process and has no capabilities. If memory runs out, it is
// killed before its parent.
func TestProcess_IsApart(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	m := load(t, wasm.Empty, host.Config{Isolation: New(Config{CPUs: 1, Harden: harden.Auto}).Of("")})
	guest := pid(t, m)
	if got, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", guest)); err != nil || string(got) != "1000\n" {
		t.Errorf("its oom_score_adj is %q, %v", got, err)
	}
	if got, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || string(got) != string(own) {
		t.Errorf("the oom_score_adj of the parent was %q, and is %q, %v", own, got, err)
	}
	if err := exec.CommandContext(t.Context(), "unshare", "--user", "--pid", "--ipc", "true").Run(); err != nil {
		t.Skipf("SKIPPED: this user may not make namespaces: %v", err)
	}
	if numbers := status(t, guest, "NSpid"); len(numbers) != len(status(t, os.Getpid(), "NSpid"))+1 || numbers[len(numbers)-1] != "1" {
		t.Errorf("its process numbers are %q", numbers)
	}
	if caps := status(t, guest, "CapEff"); strings.Trim(caps[0], "0") != "" {
		t.Errorf("its capabilities are %q", caps)
	}
}

// What a process was given is gone with it: when it is killed, and when its last
// user has released it.
func TestProcess_LeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	iso := New(Config{CPUs: 1}).Of("")
	for name, end := range map[string]func(isolate.Process){
		"killed":   func(p isolate.Process) { _ = p.Kill(errors.New("a test")) }, // which is the error
		"released": isolate.Process.Release,
	} {
		p, err := iso.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(p.Dir()); err != nil {
			t.Error(err)
		}
		end(p)
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
		if name == "killed" {
			p.Release()
		}
	}
}

// A guest process ends with the process that has started it, however that ends.
func TestProcess_EndsWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, parentCommand)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var guest int
	if _, err := fmt.Fscan(out, &guest); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(guest, 0); err != nil {
		t.Fatalf("process %d: %v", guest, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	gone(t, guest)
}

// BenchmarkReconcile_Isolated4KiB is BenchmarkReconcile_Empty4KiB of package host
// in a guest process.
func BenchmarkReconcile_Isolated4KiB(b *testing.B) {
	m := load(b, wasm.Empty, host.Config{Isolation: New(Config{CPUs: 2}).Of("")})
	b.Run("one", func(b *testing.B) { run(b, m) })
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if err := reconcile(b, m, 0); err != nil {
					b.Error(err)
				}
			}
		})
	})
	st, _ := m.GuestProcess()
	b.ReportMetric(float64(st.Memory)/(1<<20), "MiB-resident")
}

func run(b *testing.B, m *host.Module) {
	b.Helper()
	object, err := abi.AppendValue(nil, map[string]any{"data": strings.Repeat("x", 4<<10)})
	if err != nil {
		b.Fatal(err)
	}
	req := &abi.Request{ID: "1", Key: abi.Key{Name: "x"}, Object: object}
	b.ReportAllocs()
	for b.Loop() {
		g, release, err := m.Acquire(b.Context())
		if err == nil {
			_, err = g.Reconcile(b.Context(), req)
			release()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
