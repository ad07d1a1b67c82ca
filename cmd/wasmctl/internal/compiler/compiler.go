// Package compiler compiles modules in processes of their own. Compiling runs
// a compiler on bytes of anybody: it can take minutes and gigabytes, it fills the
// Go heap with garbage, and it wants the CPUs that reconciles run on. A
// process of its own has bounds that the system enforces, comes after the guests
// that run meanwhile, and gives everything back at its end.
//
// A process is the same binary, run again with the name of a hidden command; it
// reads one job from stdin and answers on stdout. It ends when the process that
// has started it does.
package compiler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/sysmemory"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Command is the command of wasmctl that Serve is behind.
const Command = "compile-for-run"

// Limits bound the compiling of one module; zero does not. Only Linux enforces
// them.
type Limits struct {
	Memory int64         // bytes that the process may allocate
	Time   time.Duration // of CPUs, not of the clock: a busy machine refuses nothing; whole seconds
	// Harden says whether the process gives up network, programs and files.
	Harden harden.Mode
}

// Compiler starts processes that compile, several at a time. Its methods are
// safe for concurrent use.
type Compiler struct {
	limits Limits
	slots  chan struct{} // a token for each process that runs
}

// New returns a Compiler of this binary, whose main must know Command.
func New(limits Limits) *Compiler {
	return &Compiler{limits: limits, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// job is what a process reads, as a line of JSON; Size bytes of code follow.
type job struct {
	Dir         string `json:"dir"`
	Size        int    `json:"size"`
	Workers     int    `json:"workers"`
	CloseOnDone bool   `json:"closeOnDone,omitempty"`
	Limits      Limits `json:"limits"`
}

// answer is what a process writes: nothing else is known of one that died.
type answer struct {
	Error string `json:"error,omitempty"`
	// Cache says that the error is the directory's and not the module's.
	Cache bool `json:"cache,omitempty"`
}

// Compile implements host.Config.Compiler. It waits while as many processes run
// as there are CPUs for. ctx ends the process.
func (c *Compiler) Compile(ctx context.Context, comp host.Compilation) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.slots }()
	line, err := json.Marshal(job{comp.Dir, len(comp.Code), comp.Workers, comp.CloseOnDone, c.limits})
	if err != nil {
		return fmt.Errorf("compiler: %w", err)
	}
	cmd := newCommand(ctx, comp.Workers)
	var out, trouble head
	cmd.Stdout, cmd.Stderr = &out, &trouble
	in, err := cmd.StdinPipe() // open until the end of Wait: the process ends with it
	if err != nil {
		return fmt.Errorf("compiler: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("compiler: start: %w", err)
	}
	if comp.Yield {
		lowerPriority(cmd.Process.Pid)
	}
	// A process that died does not read; what became of it says Wait.
	_, _ = io.Copy(in, io.MultiReader(bytes.NewReader(append(line, '\n')), bytes.NewReader(comp.Code)))
	ended := cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.verdict(out.kept, ended, cmd.ProcessState, strings.TrimSpace(string(trouble.kept)))
}

// newCommand is this binary as a compiler. It has no environment but how many
// CPUs it may use, so that it has no credentials there.
func newCommand(ctx context.Context, workers int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self(), Command)
	cmd.Args[0] = "wasmctl"
	cmd.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", max(1, workers))}
	cmd.Dir = "/" // a directory that is there
	cmd.WaitDelay = 10 * time.Second
	setGroup(cmd)
	return cmd
}

// verdict says what became of a process.
func (c *Compiler) verdict(out []byte, ended error, state *os.ProcessState, trouble string) error {
	var a answer
	switch {
	case ended == nil && json.Unmarshal(out, &a) == nil:
		if a.Error == "" {
			return nil
		}
		if a.Cache {
			return fmt.Errorf("%w: %s", host.ErrCacheDir, a.Error)
		}
		if outOfMemory(a.Error) {
			return c.tooMuchMemory()
		}
		return &moduleError{a.Error}
	case c.limits.Time > 0 && state.UserTime()+state.SystemTime() >= c.limits.Time-time.Second:
		return &moduleError{fmt.Sprintf("cannot be compiled: exceeds the CPU time limit (--compile-time %v)", c.limits.Time)}
	case outOfMemory(trouble):
		return c.tooMuchMemory()
	case killed(state):
		return &moduleError{"cannot be compiled: the compiler process was killed, possibly because the system ran out of memory"}
	case strings.Contains(trouble, "panic") || strings.Contains(trouble, "fatal error") || strings.Contains(trouble, "SIGSEGV"):
		limit := ""
		if c.limits.Memory > 0 { // where C code of Go's runtime gets no memory, it crashes
			limit = fmt.Sprintf(", possibly at the memory limit (--compile-memory %dMi)", c.limits.Memory>>20)
		}
		return &moduleError{"cannot be compiled: the compiler crashed" + limit + ": " + humanize.FirstLine(trouble)}
	}
	return fmt.Errorf("compiler: %w: %s", errors.Join(ended, errors.New("no answer")), humanize.FirstLine(trouble))
}

var noMemory = regexp.MustCompile("out of memory|cannot allocate memory|pthread_create failed|failed to create new OS thread")

// outOfMemory reports whether Go or the system has said so; a thread needs memory for
// its stack.
func outOfMemory(text string) bool { return noMemory.MatchString(text) }

func (c *Compiler) tooMuchMemory() error {
	return &moduleError{fmt.Sprintf("cannot be compiled: exceeds the memory limit (--compile-memory %dMi)", c.limits.Memory>>20)}
}

// DefaultMemory is the default bound for compiling: far more than any real
// module needs, and less than the container has, so that the rest of the
// process keeps running.
func DefaultMemory() int64 {
	const most = 4 << 30
	if n := sysmemory.Container(); n > 0 {
		return min(most, n/4*3)
	}
	return most
}

// moduleError is the fault of the module.
type moduleError struct{ text string }

// Error implements error.
func (e *moduleError) Error() string { return e.text }

// Is reports whether target is host.ErrInvalidModule.
func (e *moduleError) Is(target error) bool { return target == host.ErrInvalidModule }

// head keeps the first bytes of what is written, and no more.
type head struct{ kept []byte }

const maxHead = 16 << 10

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(maxHead-len(h.kept), len(p))]...)
	return len(p), nil
}
