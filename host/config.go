package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
)

// Defaults of Config, where neither it nor the manifest says more.
const (
	DefaultConcurrency   = 4
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
	// Limits are what the module may use at most. A manifest can lower them, one by
	// one; see LimitsFor.
	Limits Limits
	// Secrets learns the values of the Secrets that the guest sees, and keeps them
	// out of its log and its errors. Nil means one of the module's own.
	Secrets *redact.Values
	// Metric is given what the guest reports with the host function metric, and
	// returns what that answers. It must be safe for concurrent use. Nil means that
	// it answers UNSUPPORTED.
	Metric func(kind int32, name string, value float64) abi.Status
	// CacheDir holds compiled code between runs of the process; it is shared by
	// all modules and must be writable by nobody else, because what lies there
	// is executed. Empty means none.
	CacheDir string
	// Compiler compiles what is not in the cache, somewhere else: compiling a
	// module of a stranger may take minutes and gigabytes. Its error matches
	// ErrInvalidModule where the module is at fault; with any other the module is
	// compiled in this process after all. Nil compiles here.
	Compiler func(context.Context, Compilation) error
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

	// OnCall, if not nil, is told of each call into a guest when it has ended: the
	// export, how long it took and its error. It is called by many goroutines at
	// once, with the guest still held, and must be quick.
	OnCall func(export string, took time.Duration, err error)

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

const (
	pageSize  = 64 << 10
	maxMemory = 4 << 30 // what 32 bits can address
)

func (c Config) validate() error {
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("module[%s]: concurrency %d is negative", c.NameFor(nil), c.Concurrency)
	case c.DrainTimeout < 0:
		return fmt.Errorf("module[%s]: drain timeout %v is negative", c.NameFor(nil), c.DrainTimeout)
	case c.MaxModuleSize < 0 || c.FuelRate < 0:
		return fmt.Errorf("module[%s]: a limit is negative", c.NameFor(nil))
	case !slices.Contains(CPUs, c.CPU):
		return fmt.Errorf("module[%s]: cpu %q is none of %v", c.NameFor(nil), c.CPU, CPUs)
	case c.CPU != CPUFuel && (c.Limits.Fuel > 0 || c.FuelRate > 0):
		return fmt.Errorf("module[%s]: fuel is limited, but not counted: cpu is %q and not %q", c.NameFor(nil), c.CPU, CPUFuel)
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("module[%s]: %w", c.NameFor(nil), err)
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
	if c.Secrets == nil {
		c.Secrets = &redact.Values{}
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

// settings are the manifest's defaults under the configured ones.
func (c Config) settings(m *abi.Manifest) map[string]string {
	s := map[string]string{}
	if m != nil {
		maps.Copy(s, m.Config)
	}
	maps.Copy(s, c.Settings)
	return s
}
