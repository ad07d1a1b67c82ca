package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Defaults of Config, where neither it nor the manifest says more.
const (
	DefaultConcurrency   = 4
	DefaultMemory        = 256 << 20        // bytes of linear memory of one instance
	DefaultTimeout       = 30 * time.Second // wall-clock time of one entry call
	DefaultMaxModuleSize = 64 << 20         // bytes of a module
	DefaultDrainTimeout  = 30 * time.Second // for runs of a generation that was replaced
	DefaultKeepFor       = 15 * time.Minute // of the code of such a generation
)

// Config says how a module is hosted. The zero value works: a module without
// access to the API, with the default limits, that logs nowhere.
type Config struct {
	// Name is the controller's name in logs and errors. Empty means the
	// manifest's name, then Fallback, then "module".
	Name, Fallback string
	// Concurrency is how many instances may be in use by reconciles at once; one
	// more serves map, filter and configure. Zero leaves it to the manifest, then
	// to DefaultConcurrency.
	Concurrency int
	// Limits override those of the manifest, one by one.
	Limits Limits
	// CacheDir holds compiled code between runs of the process; it is shared by
	// all modules and must be writable by nobody else, because what lies there
	// is executed. Empty means none.
	CacheDir string
	// MaxModuleSize is the largest module that is looked at, in bytes. Zero
	// means DefaultMaxModuleSize.
	MaxModuleSize int64
	// Logger takes what the guest logs and prints, and the host's warnings. Nil
	// discards both.
	Logger *slog.Logger
	// Settings are what configure gets and config_get serves, over the manifest's
	// defaults. Module.Configure replaces them.
	Settings map[string]string
	// API is called once, when the manifest is known, for the API that serves
	// the operations api_*, cache_* and event_record. Nil means that they answer
	// UNSUPPORTED.
	API func(*abi.Manifest) (API, error)

	// Budget bounds the linear memory of all modules that share it; nil bounds
	// that of each instance only.
	Budget *Budget

	// DrainTimeout is how long runs of a generation may go on after another was
	// promoted. Zero means DefaultDrainTimeout.
	DrainTimeout time.Duration
	// KeepFor is how long the code of a generation is kept for a rollback after
	// another was promoted. Zero means DefaultKeepFor, negative not at all.
	KeepFor time.Duration

	// CPU says how processor time is bounded. Empty means CPUFuel.
	CPU CPU
	// FuelRate is the fuel that all instances of the module together may use in
	// a second. A module that uses more is slowed down. Zero is not bounded.
	FuelRate int64
	// Shares lets modules take turns on the processors; nil leaves that to Go's
	// scheduler.
	Shares *Shares
	// slice is the fuel that a guest gets at a time. Zero means what takes about
	// sliceTime.
	slice int64

	// Now, Mono and Random are the clocks and the randomness that a guest sees,
	// through the host functions as through WASI. All must be safe for
	// concurrent use. Nil means time.Now, nanoseconds since the module was
	// loaded, and crypto/rand.
	Now    func() time.Time
	Mono   func() int64
	Random io.Reader
}

// API serves the operations that leave the sandbox: every byte that a guest
// reads from or writes to the cluster crosses Call.
type API interface {
	// Call answers one operation. ctx ends when the guest's call runs out of
	// time or is cancelled. req is Call's own; it has not been checked. The
	// body of the response must not be changed afterwards. Call must be safe
	// for concurrent use.
	Call(ctx context.Context, op abi.Op, req []byte) abi.Response
}

// Limits bound what one instance may use. Zero leaves a limit to the manifest,
// then to the default.
type Limits struct {
	// Memory is the linear memory of one instance, in bytes. It is rounded down
	// to pages of 64 KiB.
	Memory int64 `json:"memory"`
	// Timeout is the wall-clock time of one entry call, host calls included.
	Timeout time.Duration `json:"timeout"`
	// HostCalls is how many operations one entry call may ask for; zero is
	// not bounded.
	HostCalls int64 `json:"hostCalls,omitempty"`
	// Fuel is how much work one entry call may do, by the unit of
	// docs/metering.md; zero is not bounded. Only CPUFuel counts it.
	Fuel int64 `json:"fuel,omitempty"`
}

const (
	pageSize  = 64 << 10
	maxMemory = 4 << 30 // what 32 bits can address
)

func (c Config) validate() error {
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("module[%s]: concurrency %d is negative", c.NameFor(nil), c.Concurrency)
	case c.Limits.Memory < 0 || c.Limits.Memory > maxMemory:
		return fmt.Errorf("module[%s]: memory limit of %d bytes is not between 0 and 4 GiB", c.NameFor(nil), c.Limits.Memory)
	case c.DrainTimeout < 0:
		return fmt.Errorf("module[%s]: drain timeout %v is negative", c.NameFor(nil), c.DrainTimeout)
	case c.Limits.Timeout < 0 || c.Limits.HostCalls < 0 || c.MaxModuleSize < 0 || c.Limits.Fuel < 0 || c.FuelRate < 0:
		return fmt.Errorf("module[%s]: a limit is negative", c.NameFor(nil))
	case !slices.Contains(CPUs, c.CPU):
		return fmt.Errorf("module[%s]: cpu %q is none of %v", c.NameFor(nil), c.CPU, CPUs)
	case c.CPU != CPUFuel && (c.Limits.Fuel > 0 || c.FuelRate > 0):
		return fmt.Errorf("module[%s]: fuel is limited, but not counted: cpu is %q and not %q", c.NameFor(nil), c.CPU, CPUFuel)
	}
	return nil
}

// withDefaults fills in what needs no manifest.
func (c Config) withDefaults() Config {
	if c.MaxModuleSize == 0 {
		c.MaxModuleSize = DefaultMaxModuleSize
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.KeepFor == 0 {
		c.KeepFor = DefaultKeepFor
	}
	if c.CPU == "" {
		c.CPU = defaultCPU
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Mono == nil {
		start := time.Now()
		c.Mono = func() int64 { return int64(time.Since(start)) }
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c
}

// NameFor returns the name of a module with this manifest, which may be nil:
// the first there is of Name, the manifest's, Fallback and "module".
func (c Config) NameFor(m *abi.Manifest) string {
	switch {
	case c.Name != "":
		return c.Name
	case m != nil && m.Name != "":
		return m.Name
	case c.Fallback != "":
		return c.Fallback
	}
	return "module"
}

func (c Config) concurrency(m *abi.Manifest) int {
	switch {
	case c.Concurrency > 0:
		return c.Concurrency
	case m != nil && m.Concurrency > 0:
		return m.Concurrency
	}
	return DefaultConcurrency
}

// limits joins the configured limits, the manifest's and the defaults.
func (c Config) limits(m *abi.Manifest) Limits {
	l := Limits{Memory: DefaultMemory, Timeout: DefaultTimeout}
	if m != nil && m.Limits != nil {
		if v := m.Limits.Memory; v > 0 {
			l.Memory = v
		}
		if v := m.Limits.Timeout; v > 0 {
			l.Timeout = time.Duration(min(v, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
		}
		l.HostCalls = m.Limits.HostCalls
		l.Fuel = m.Limits.Fuel
	}
	if c.Limits.Memory > 0 {
		l.Memory = c.Limits.Memory
	}
	if c.Limits.Timeout > 0 {
		l.Timeout = c.Limits.Timeout
	}
	if c.Limits.HostCalls > 0 {
		l.HostCalls = c.Limits.HostCalls
	}
	if c.Limits.Fuel > 0 {
		l.Fuel = c.Limits.Fuel
	}
	if c.CPU != CPUFuel {
		l.Fuel = 0 // nobody counts
	}
	l.Memory = min(l.Memory, maxMemory) / pageSize * pageSize
	return l
}

// settings are the manifest's defaults under the configured ones.
func (c Config) settings(m *abi.Manifest) map[string]string {
	s := map[string]string{}
	if m != nil {
		maps.Copy(s, m.Config)
	}
	maps.Copy(s, c.Settings)
	return s
}
