package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// forceBound is forceTime and a generous rest, for a busy machine.
const forceBound = forceTime + 2*time.Second

// hangs is a command that never looks at its context, for TestSignals: it spins,
// and nobody reads its log.
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

// follows is hangs for a command that shows something.
func follows() {
	_, release := followContext(context.Background())
	defer release()
	fmt.Println("ready")
	select {}
}

// TestSignals_TheSecondEndsAProcessThatHangs: what takes signals ends, whatever
// it does, with the documented code.
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
				c := startChild(t, cmd)
				if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
					t.Fatal(err)
				}
				c.signal(sig)
				select {
				case <-c.done:
					t.Fatal("ended at the first signal")
				case <-time.After(time.Millisecond): // signals that are pending at once are one
				}
				if endsAtSignals(c, sig); c.cmd.ProcessState.ExitCode() != exitForced {
					t.Errorf("exit code %d, want %d", c.cmd.ProcessState.ExitCode(), exitForced)
				}
			})
		}
	}
}

// endsAtSignals sends a signal until the process has ended, and checks the time
// from the second on.
func endsAtSignals(c *child, sig syscall.Signal) {
	c.t.Helper()
	c.signal(sig)
	again := time.NewTicker(50 * time.Millisecond) // two that are pending at once are one
	defer again.Stop()
	for second := time.Now(); ; {
		select {
		case <-c.done:
			if took := time.Since(second); took > forceBound {
				c.t.Errorf("ended %v after the second signal", took)
			}
			return
		case <-again.C:
			c.signal(sig)
		}
		if time.Since(second) > waitLimit {
			c.t.Fatal("does not end")
		}
	}
}

// TestSignals_EndAProcessUnderAttack: whatever a guest, a manifest or a file has
// wasmctl do before it reconciles, two signals end it.
func TestSignals_EndAProcessUnderAttack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var grant bytes.Buffer
	grant.WriteString("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n")
	for grant.Len() < flags.MaxNamed-1000 {
		fmt.Fprintf(&grant, "- {resource: pods, verbs: [get], names: [%s]}\n", strings.Repeat("x,", 100))
	}
	crafted, grants := write("crafted.wasm", atItsBounds(t)), write("grant.yaml", grant.Bytes())
	spins, cluster := guests+"init_spin.wasm", writeKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"})
	webapp := exampleWasm(t, "webapp")
	run := func(args ...string) []string {
		return append([]string{"run", "--kubeconfig", cluster, "--socket", "none", "--timeout", "1h"}, args...)
	}
	for name, args := range map[string][]string{
		"a start that spins":       run(spins, "--for", "cm", "--grant-manifest"),
		"a manifest at its bounds": run(crafted, "--grant-manifest"),
		"rbac of it":               {"rbac", crafted},
		"inspect of it":            {"inspect", crafted},
		"a huge grant":             run(guests+"empty.wasm", "--for", "cm", "--grant", grants),
		"a slow compile":           run(webapp, "--grant-manifest", "--cache-dir", "none"),
		"validate of what spins":   {"validate", spins},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("wasmctl", args...)
			c := startChild(t, cmd)
			enginetest.Until(t, "it computes, or has ended", func() bool {
				select {
				case <-c.done:
					return true
				default:
					return cpuTime(t, cmd.Process.Pid) > 150*time.Millisecond || c.text() != "" || compilerOf(t, cmd.Process.Pid) != 0
				}
			})
			c.signal(syscall.SIGINT)
			endsAtSignals(c, syscall.SIGINT)
		})
	}
}

// atItsBounds is a module whose manifest asks for as much as one may.
func atItsBounds(t *testing.T) []byte {
	t.Helper()
	m := &abi.Manifest{Name: "crafted", For: &abi.Watch{Version: "v1", Kind: "ConfigMap"}}
	for i := range 50 {
		m.Watches = append(m.Watches, abi.Watch{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1", Kind: "Thing", Map: abi.MapOwner})
	}
	capabilities := abi.BoundOf("capabilities")
	for range capabilities {
		c := abi.Capability{Resource: "pods", Verbs: []string{"patch"}}
		for i := range abi.MaxRights / capabilities {
			c.Names = append(c.Names, fmt.Sprint("name", i))
		}
		for i := range abi.MaxFields / capabilities {
			c.Fields = append(c.Fields, fmt.Sprint("spec.a", i))
		}
		m.Capabilities = append(m.Capabilities, c)
	}
	module, err := host.WithManifest(wasm.Empty, m)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// cpuTime is what a process has used of the CPUs.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	ticks, _ := strconv.Atoi(fields[11]) // utime, in hundredths of a second
	return time.Duration(ticks) * 10 * time.Millisecond
}

// TestSignals_HaveOneTaker: nothing but takeSignals takes the signals that end a
// process from Go, so what it promises holds for all commands.
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
