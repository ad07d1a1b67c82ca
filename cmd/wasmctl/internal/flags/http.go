// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/compiler"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/load"
)

// HTTP has the flags of the HTTP servers.
type HTTP struct {
	Metrics, Health string // addresses; see IsAddress
	Pprof           bool
}

func (o *HTTP) bind(f *pflag.FlagSet) {
	f.StringVar(&o.Metrics, "metrics-address", "", `Serve /metrics on this address, for example :8080 (default: none)`)
	f.StringVar(&o.Health, "health-address", "", `Serve /livez and /readyz on this address, for example :8081; can be the same as --metrics-address (default: none)`)
	f.BoolVar(&o.Pprof, "pprof", false, "Serve /debug/pprof/ on --metrics-address; it exposes memory contents, so restrict access to that address")
}

func (o *HTTP) validate() error {
	var errs []error
	for _, flag := range []struct{ name, address string }{{"metrics", o.Metrics}, {"health", o.Health}} {
		if !IsAddress(flag.address) {
			continue
		}
		if _, _, err := net.SplitHostPort(flag.address); err != nil {
			errs = append(errs, fmt.Errorf(`--%s-address %q: want host:port, :port, or "none"`, flag.name, flag.address))
		}
	}
	if o.Pprof && !IsAddress(o.Metrics) {
		errs = append(errs, errors.New("--pprof needs --metrics-address, which serves it"))
	}
	return errors.Join(errs...)
}

// IsAddress reports whether a flag's value is an address. The values "", "0" and "none" are not: they
// turn the server off.
func IsAddress(s string) bool { return !slices.Contains([]string{"", "0", "none"}, s) }

// Compile has the flags that limit compiling one module, in a separate process.
type Compile struct {
	memory      string
	memoryBytes int64 // memory, parsed by validate
	time        time.Duration
}

func (o *Compile) bind(f *pflag.FlagSet) {
	f.StringVar(&o.memory, "compile-memory", "", "Limit the memory of the process that compiles modules; 0 is no limit (default: 4Gi, or 3/4 of the container's memory)")
	f.DurationVar(&o.time, "compile-time", 5*time.Minute, "Limit the CPU time for compiling a module; 0 is no limit")
}

func (o *Compile) validate() error {
	if o.time < 0 || o.time > 0 && o.time < time.Second {
		return fmt.Errorf("--compile-time %v: want at least 1s, or 0", o.time)
	}
	var err error
	switch o.memory {
	case "0":
		return nil
	case "":
		o.memoryBytes = subprocess.DefaultMemory()
		return nil
	}
	if o.memoryBytes, err = parseSize(o.memory, 64<<20, math.MaxInt64); err != nil {
		return fmt.Errorf("--compile-memory %w", err)
	}
	return nil
}

// compile returns a function that compiles a module in a separate process.
func (o *Compile) compile(mode harden.Mode) func(context.Context, load.Compilation) error {
	return compiler.New(compiler.Limits{Memory: o.memoryBytes, Time: o.time, Harden: mode}).Compile
}
