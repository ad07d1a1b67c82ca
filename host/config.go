// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/host/share"
)

// Defaults of Config, if neither it nor the manifest sets a value.
const (
	DefaultConcurrency  = 4
	DefaultDrainTimeout = 30 * time.Second // for runs of a revision that was replaced
	DefaultKeepFor      = 15 * time.Minute // of the code of such a revision
	DefaultKeepIdle     = 5 * time.Minute  // of an instance in which nothing runs
)

// Config says how a module is hosted. The zero value works: a module without access to the
// API, with the default limits and without a log.
type Config struct {
	// Name is the controller's name in logs and errors. If empty, it is the manifest's name,
	// then Fallback, then "module".
	Name, Fallback string
	// Controller is the controller as which a module with several controllers runs. If
	// empty, it is Name.
	Controller string
	// Concurrency is how many instances may run reconciles at once; one more serves map,
	// filter and configure. Zero means the value of the manifest, which may request up to
	// abi.MaxConcurrency, then DefaultConcurrency.
	Concurrency int
	// Limits are what the module may use at most. A manifest can lower them, one by one; see
	// LimitsFor.
	Limits share.Limits
	// Settings are the values for configure and config_get, over the manifest's defaults.
	// Module.Configure replaces them.
	Settings map[string]string
	// API is called once, when the manifest is known, for the API that serves the operations
	// api_*, cache_* and event_record. If nil, they answer UNSUPPORTED.
	API func(*abi.Manifest) (operation.API, error)
	// Logger takes what the guest logs and prints, and the host's warnings. If nil, both are
	// discarded.
	Logger *slog.Logger
	// Secrets learns the values of the Secrets that the guest sees, and keeps them out of
	// its log and its errors. If nil, the module has its own.
	Secrets *redact.Values
	// Isolation runs the instances of the module in a process of their own, with its own
	// clocks and randomness. If nil, they are in this process.
	Isolation isolate.Isolation

	// Code says how the module is compiled, and where code is stored.
	Code load.Options
	// Process is what the module shares with others in this process.
	Process Process
	// Keep says how long things are kept that may be used again.
	Keep Keep
	// Observer observes calls.
	Observer operation.Observer
	// Clock has the clocks and the randomness that a guest sees. Absent ones are those of
	// the system; the monotonic clock counts from when the module was loaded, or the first
	// one with the same Codes.
	Clock operation.Clock
}

// Process is what modules share in a process.
type Process struct {
	// Tenant is charged with everything that the host does for the module. If empty, the
	// module is its own tenant.
	Tenant string
	// Budget bounds the linear memory of all modules that share it. If nil, only that of
	// each instance is bounded.
	Budget *share.Budget
	// Account counts the host's own memory for the module. If nil, the module has one in
	// Budget.
	Account *share.Account
	// CPUs lets modules share the CPUs in time slices. If nil, Go's scheduler decides.
	CPUs *share.CPUScheduler
	// Codes shares compiled code with other modules, and with those of the same bytes and
	// Tenant the result of start code. Their clocks and randomness must be the same. May be
	// nil.
	Codes *Codes
	// Watchdog notices calls that do not end with their time. May be nil.
	Watchdog *share.Watchdog

	// named is Tenant without a default: modules without a tenant share the result of start
	// code.
	named string
	// slice is the fuel of a time slice. Zero means about the right time.
	slice int64
}

// codeAccount returns the account for the code of the module. It is nil if the module has no
// tenant: then it is the operator's.
func (p *Process) codeAccount() *share.Account {
	if p.named == "" {
		return nil
	}
	return share.NewAccount(p.Budget, p.Tenant, share.Code)
}

// Keep says how long things are kept that may be used again.
type Keep struct {
	// Drain is how long runs of a revision may go on after another was promoted. Zero means
	// DefaultDrainTimeout.
	Drain time.Duration
	// Code is how long the code of a revision is kept for a rollback after another was
	// promoted. Zero means DefaultKeepFor; if negative, it is not kept.
	Code time.Duration
	// Idle is how long an instance is kept in which nothing runs. Zero means
	// DefaultKeepIdle; if negative, it is kept forever.
	Idle time.Duration
}

func (c Config) validate() error {
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("module[%s]: concurrency %d is negative", c.NameFor(nil), c.Concurrency)
	case c.Keep.Drain < 0:
		return fmt.Errorf("module[%s]: drain timeout %v is negative", c.NameFor(nil), c.Keep.Drain)
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("module[%s]: %w", c.NameFor(nil), err)
	}
	return nil
}

// defaultIsolation is the value of Config.Isolation if that is nil. Tests set it.
var defaultIsolation isolate.Isolation

// withDefaults sets the values that need no manifest.
func (c Config) withDefaults() Config {
	c.Process.named = c.Process.Tenant
	c.Process.Tenant = cmp.Or(c.Process.Tenant, share.OwnTenant(c.NameFor(nil)))
	c.Keep.Drain = cmp.Or(c.Keep.Drain, DefaultDrainTimeout)
	c.Keep.Code = cmp.Or(c.Keep.Code, DefaultKeepFor)
	c.Keep.Idle = cmp.Or(c.Keep.Idle, DefaultKeepIdle)
	c.Isolation = cmp.Or(c.Isolation, defaultIsolation)
	if c.Process.Account == nil {
		c.Process.Account = share.NewAccount(c.Process.Budget, c.Process.Tenant, share.Operations)
	}
	c.Secrets = cmp.Or(c.Secrets, &redact.Values{})
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Clock = c.Clock.WithDefaults(c.Process.Codes.began())
	return c
}

// NameFor returns the name of a module with this manifest, which may be nil: the first
// non-empty one of Name, the manifest's, Fallback and "module".
func (c Config) NameFor(m *abi.Manifest) string {
	return cmp.Or(c.Name, cmp.Or(m, &abi.Manifest{}).Name, c.Fallback, "module")
}

// LimitsFor returns the limits in force for a module with this manifest, which may be nil:
// see share.Limits.For.
func (c Config) LimitsFor(m *abi.Manifest) share.Limits {
	l, _ := c.Limits.For(m)
	return l
}

// settings returns the manifest's defaults under the configured values.
func (c Config) settings(m *abi.Manifest) map[string]string {
	s := map[string]string{}
	if m != nil {
		maps.Copy(s, m.Config)
	}
	maps.Copy(s, c.Settings)
	return s
}
