package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
)

// Defaults of Config, where neither it nor the manifest says more.
const (
	DefaultConcurrency   = 4
	DefaultMaxModuleSize = 128 << 20        // bytes of a module
	DefaultDrainTimeout  = 30 * time.Second // for runs of a revision that was replaced
	DefaultKeepFor       = 15 * time.Minute // of the code of such a revision
	DefaultKeepIdle      = 5 * time.Minute  // of an instance that nothing runs in
)

// Config says how a module is hosted. The zero value works: a module without
// access to the API, with the default limits, that logs nowhere.
type Config struct {
	// Name is the controller's name in logs and errors. Empty means the
	// manifest's name, then Fallback, then "module".
	Name, Fallback string
	// Controller is which one the module is, where it has several. Empty means Name.
	Controller string
	// Concurrency is how many instances may be in use by reconciles at once; one
	// more serves map, filter and configure. Zero leaves it to the manifest, which
	// may ask for abi.MaxConcurrency, then to DefaultConcurrency.
	Concurrency int
	// Limits are what the module may use at most. A manifest can lower them, one by
	// one; see LimitsFor.
	Limits Limits
	// Secrets learns the values of the Secrets that the guest sees, and keeps them
	// out of its log and its errors. Nil means one of the module's own.
	Secrets *redact.Values
	// Metric is given what the guest reports with the host function metric, and
	// returns what that answers: kind is abi.MetricCounter or abi.MetricGauge, and
	// the name fits Prometheus. It must be safe for concurrent use. Nil means that
	// it answers UNSUPPORTED.
	Metric func(kind int32, name string, value float64) abi.Status
	// CacheDir keeps compiled code between runs of the process. All modules
	// share it. Empty means none.
	CacheDir string
	// CacheKey authenticates what is in CacheDir, because it is executed: code of
	// another key is ignored and compiled again. Without a key no other user may have
	// write access.
	CacheKey []byte
	// OnForged, if not nil, is called for each entry of CacheDir that was ignored.
	OnForged func()
	// Compiler compiles what is not in the cache, somewhere else: compiling a
	// module of a stranger may take minutes and gigabytes. Its error matches
	// ErrInvalidModule where the module is at fault; with any other the module is
	// compiled in this process after all. Nil compiles here.
	Compiler func(context.Context, Compilation) error
	// MaxModuleSize is the largest module that is checked, in bytes. Zero means
	// DefaultMaxModuleSize.
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

	// Isolation has the instances of the module in a process of their own, with its
	// own clocks and randomness; nil has them in this process.
	Isolation Isolation

	// Budget bounds the linear memory of all modules that share it; nil bounds
	// that of each instance only.
	Budget *Budget
	// Account counts the host's own memory for the module; nil means one in Budget.
	Account *Account

	// DrainTimeout is how long runs of a revision may go on after another was
	// promoted. Zero means DefaultDrainTimeout.
	DrainTimeout time.Duration
	// KeepFor is how long the code of a revision is kept for a rollback after
	// another was promoted. Zero means DefaultKeepFor, negative not at all.
	KeepFor time.Duration

	// KeepIdle is how long an instance is kept that nothing runs in. Zero means
	// DefaultKeepIdle, negative for ever.
	KeepIdle time.Duration

	// FuelRate is the fuel that all instances of the module together may use in
	// a second. A module that uses more is slowed down. Zero is not bounded.
	FuelRate int64
	// CPUScheduler lets modules share the CPUs in time slices; nil leaves that to
	// Go's scheduler.
	CPUScheduler *CPUScheduler
	// Codes shares compiled code with other modules, and with those of the same bytes
	// what start code has made of clocks and randomness, which must be the same; nil does
	// not.
	Codes *Codes
	// Watchdog notices calls that do not end with their time; nil does not.
	Watchdog *Watchdog
	// slice is the fuel that a guest gets at a time. Zero means what takes about
	// sliceTime.
	slice int64

	// OnCall, if not nil, is notified of each call into a guest when it has ended:
	// the export, how long it took and its error. It is called by many goroutines
	// at once, with the guest still held, and must be quick.
	OnCall func(export string, took time.Duration, err error)
	// OutsideRuns, if not nil, receives how long a guest computed in a call that
	// belongs to no run: map and filter, and start code that no run waits for. It is
	// called as OnCall is. What it computes for a run is in abi.Run.Cost.
	OutsideRuns func(guest time.Duration)

	// Now, Mono and Random are the clocks and the randomness that a guest sees,
	// through the host functions as through WASI. All must be safe for
	// concurrent use. Nil means time.Now, nanoseconds since the module was
	// loaded, or the first one with the same Codes, and crypto/rand.
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
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("module[%s]: %w", c.NameFor(nil), err)
	}
	return nil
}

// withDefaults fills in what needs no manifest.
func (c Config) withDefaults() Config {
	c.MaxModuleSize = cmp.Or(c.MaxModuleSize, DefaultMaxModuleSize)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.KeepFor = cmp.Or(c.KeepFor, DefaultKeepFor)
	c.KeepIdle = cmp.Or(c.KeepIdle, DefaultKeepIdle)
	c.Isolation = cmp.Or(c.Isolation, defaultIsolation)
	if c.Account == nil {
		c.Account = NewAccount(c.Budget)
	}
	c.Secrets = cmp.Or(c.Secrets, &redact.Values{})
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Mono == nil {
		start := c.Codes.began()
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
	return cmp.Or(c.Name, cmp.Or(m, &abi.Manifest{}).Name, c.Fallback, "module")
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
