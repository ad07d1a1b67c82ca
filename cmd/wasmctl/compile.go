package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/compiler"
)

// compileOptions say what compiling one module may take, in a process of its
// own.
type compileOptions struct {
	aside       bool // without it modules are compiled in this process
	memory      string
	memoryBytes int64 // memory, parsed by validate
	time        time.Duration
}

func (o *compileOptions) bind(f *pflag.FlagSet) {
	o.aside = true
	f.StringVar(&o.memory, "compile-memory", "", "memory that compiling a module may take, in a process of its own; 0 is not bounded (default: 4Gi, or three quarters of what the container has)")
	f.DurationVar(&o.time, "compile-time", 5*time.Minute, "time of processors that compiling a module may take; 0 is not bounded")
}

func (o *compileOptions) validate() error {
	if o.time < 0 || o.time > 0 && o.time < time.Second {
		return fmt.Errorf("--compile-time %v: want a second or more, or 0", o.time)
	}
	var err error
	switch o.memory {
	case "0":
		return nil
	case "":
		o.memoryBytes = compiler.DefaultMemory()
		return nil
	}
	if o.memoryBytes, err = parseSize(o.memory, 64<<20, math.MaxInt64); err != nil {
		return fmt.Errorf("--compile-memory %w", err)
	}
	return nil
}

// compiler returns what compiles, or nil where this process does.
func (o *compileOptions) compiler() *compiler.Compiler {
	if !o.aside {
		return nil
	}
	return compiler.New(compiler.Limits{Memory: o.memoryBytes, Time: o.time})
}

// newCmdCompile is the process that compiles. Users do not call it.
func newCmdCompile(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    compiler.Command,
		Short:  "Compile a module for wasmctl run",
		Hidden: true,
		Args:   exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withCode(exitUsage, compiler.Serve(cmd.Context(), s.in, s.out))
		},
	}
}
