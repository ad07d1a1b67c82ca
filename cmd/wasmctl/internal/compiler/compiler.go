// SPDX-License-Identifier: Apache-2.0

// Package compiler compiles modules in processes of their own. Compilation runs a compiler on
// untrusted bytes: it can take minutes and gigabytes, it fills the Go heap with garbage, and it
// competes with reconciles for CPUs. The system limits a process of its own, gives guests priority
// over it, and frees everything at its end.
//
// A process is the same binary, started with a hidden command. It reads one job from stdin and
// answers on stdout. It ends when its parent ends.
package compiler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Command is the command of wasmctl that calls Serve.
const Command = "compile-for-run"

// Limits limit the compilation of one module. A zero field is no limit. Only Linux enforces them.
type Limits struct {
	Memory int64         // bytes that the process may allocate
	Time   time.Duration // CPU time, not wall time: a busy machine refuses nothing; whole seconds
	// Harden controls whether the process gives up network, programs and files.
	Harden harden.Mode
}

// Compiler starts processes that compile, several at a time, fairly by tenant: a tenant whose
// modules have taken much CPU time waits for the others. Its methods are safe for concurrent use.
type Compiler struct {
	limits Limits
	cpus   *share.Turns // a turn for each CPU
}

// New returns a Compiler for this binary, whose main must have Command.
func New(limits Limits) *Compiler {
	cpus := runtime.GOMAXPROCS(0)
	return &Compiler{limits: limits, cpus: share.NewTurns(cpus, cpus)}
}

// job is the input of a process, as a line of JSON. Size bytes of code follow.
type job struct {
	Dir     string `json:"dir"`
	Size    int    `json:"size"`
	Workers int    `json:"workers"`
	Limits  Limits `json:"limits"`
}

// answer is the output of a process. A process that died gives none.
type answer struct {
	Error string `json:"error,omitempty"`
	// Cache means that the error is about the directory, and not about the module.
	Cache bool `json:"cache,omitempty"`
}

// Compile implements host.Config.Compiler. It waits if other processes use all CPUs. If there are
// many modules, each compiles on one CPU, which is less work in total. The end of ctx ends the
// process.
func (c *Compiler) Compile(ctx context.Context, comp load.Compilation) error {
	if err := c.cpus.Take(ctx, comp.Tenant); err != nil {
		return err
	}
	workers := 1 + c.cpus.More(comp.Tenant, comp.Workers-1)
	used, err := c.compile(ctx, comp, workers)
	c.cpus.End(comp.Tenant, workers, used)
	return err
}

// compile returns the CPU time that was used.
func (c *Compiler) compile(ctx context.Context, comp load.Compilation, workers int) (used time.Duration, err error) {
	if !comp.Yield {
		return c.process(ctx, comp, workers, func(int) {})
	}
	if used, err = c.whenIdle(ctx, comp, workers); !errors.Is(err, errStarved) {
		return used, err
	}
	if err = emptied(comp.Dir); err == nil {
		var more time.Duration
		more, err = c.process(ctx, comp, workers, subprocess.LowerPriority)
		used += more
	}
	return used, err
}

// process starts a process and waits for it. It calls started before it sends the job.
func (c *Compiler) process(ctx context.Context, comp load.Compilation, workers int, started func(pid int)) (used time.Duration, err error) {
	line, err := json.Marshal(job{comp.Dir, len(comp.Code), workers, c.limits})
	if err != nil {
		return 0, fmt.Errorf("compiler: %w", err)
	}
	cmd := subprocess.Command(ctx, Command, workers)
	var out, trouble subprocess.Head
	cmd.Stdout, cmd.Stderr = &out, &trouble
	in, err := cmd.StdinPipe() // open until the end of Wait: the process ends when it is closed
	if err != nil {
		return 0, fmt.Errorf("compiler: %w", err)
	}
	if err := subprocess.Start(cmd); err != nil {
		return 0, fmt.Errorf("compiler: start: %w", err)
	}
	started(cmd.Process.Pid)
	// A process that died does not read. Wait returns the reason.
	_, _ = io.Copy(in, io.MultiReader(bytes.NewReader(append(line, '\n')), bytes.NewReader(comp.Code)))
	ended := cmd.Wait()
	used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if ctx.Err() != nil {
		return used, context.Cause(ctx)
	}
	return used, c.verdict(out.Bytes, ended, used, subprocess.Killed(cmd.ProcessState), strings.TrimSpace(string(trouble.Bytes)))
}

// verdict interprets the end of a process.
func (c *Compiler) verdict(out []byte, ended error, used time.Duration, killed bool, trouble string) error {
	var a answer
	switch {
	case ended == nil && json.Unmarshal(out, &a) == nil:
		if a.Error == "" {
			return nil
		}
		if a.Cache {
			return fmt.Errorf("%w: %s", load.ErrCacheDir, a.Error)
		}
		if subprocess.OutOfMemory(a.Error) {
			return c.tooMuchMemory()
		}
		return &moduleError{a.Error}
	case c.limits.Time > 0 && used >= c.limits.Time-time.Second:
		return &moduleError{fmt.Sprintf("cannot be compiled: exceeds the CPU time limit (--compile-time %v)", c.limits.Time)}
	case subprocess.OutOfMemory(trouble):
		return c.tooMuchMemory()
	case killed:
		return &moduleError{"cannot be compiled: the compiler process was killed, possibly because the system ran out of memory"}
	case strings.Contains(trouble, "panic") || strings.Contains(trouble, "fatal error") || strings.Contains(trouble, "SIGSEGV"):
		limit := ""
		if c.limits.Memory > 0 { // without memory, C code of Go's runtime crashes
			limit = fmt.Sprintf(", possibly at the memory limit (--compile-memory %dMi)", c.limits.Memory>>20)
		}
		return &moduleError{"cannot be compiled: the compiler crashed" + limit + ": " + humanize.FirstLine(trouble)}
	}
	return fmt.Errorf("compiler: %w: %s", errors.Join(ended, errors.New("no answer")), humanize.FirstLine(trouble))
}

func (c *Compiler) tooMuchMemory() error {
	return &moduleError{fmt.Sprintf("cannot be compiled: exceeds the memory limit (--compile-memory %dMi)", c.limits.Memory>>20)}
}

// moduleError is an error of the module.
type moduleError struct{ text string }

// Error implements error.
func (e *moduleError) Error() string { return e.text }

// Is reports whether target is load.ErrInvalidModule.
func (e *moduleError) Is(target error) bool { return target == load.ErrInvalidModule }
