// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// Options configure one controller. The spec has its defaults applied.
type Options struct {
	plan.Options

	// Tenant is charged with everything that the host does for this controller.
	Tenant string
	// Fallback is the controller's name if neither the spec nor the manifest sets one.
	Fallback string
	// Source describes the origin of the module in logs and status.
	Source string
	// Settings are the spec's Config as strings. The loop owns them once the controller
	// runs.
	Settings map[string]string
	// Secrets are the values of Secrets that are hidden in all output. If nil, they are empty
	// at first.
	Secrets *redact.Values
	// Triggers request reconciles in addition to the triggers of the spec.
	Triggers []trigger.Source
	// Unshared makes this replica reconcile all objects, although replicas share the objects
	// of other controllers.
	Unshared bool
	// NoSwapEvents omits the Kubernetes events about the results of swaps.
	NoSwapEvents bool
	Audit        func(grant []byte) error
	OnWrite      func(telemetry.Write)
	// OnResult, if not nil, is called when a run has ended. It must not block, and the
	// outcome is valid only during the call.
	OnResult func(*applier.Outcome)
}

// limits returns the limits of the spec, which must be valid.
func (o *Options) limits() (l share.Limits) {
	values, _ := o.Limits.Parse(nil)
	for name, v := range values {
		l.Set(abi.LimitName(name), v)
	}
	l.FuelRate = values[v1alpha1.LimitFuelRate]
	return l
}

// concurrency returns the concurrency of the spec; 0 means that the manifest decides.
func (o *Options) concurrency() int {
	if o.Concurrency == nil {
		return 0
	}
	return int(*o.Concurrency)
}

// dryRun returns the kind of dry run that the mode of the spec asks for.
func (o *Options) dryRun() kubeapi.DryRun {
	switch o.Mode {
	case v1alpha1.ModeDryRun, v1alpha1.ModeAudit:
		return kubeapi.DryRunServer
	case v1alpha1.ModeDryRunClient:
		return kubeapi.DryRunClient
	case v1alpha1.ModeEnforce:
	}
	return kubeapi.DryRunNone
}

// triggers returns the triggers of the spec, which must be valid, and those of the program.
func (o *Options) triggers() []trigger.Source {
	var sources []trigger.Source
	if t, err := trigger.NewResync(o.Resync.Or(0)); err == nil {
		sources = append(sources, t)
	}
	for _, spec := range o.Schedule {
		if t, err := trigger.NewCron(spec, time.Local); err == nil {
			sources = append(sources, t)
		}
	}
	return append(sources, o.Triggers...)
}

// Shared holds the parts that the controllers of a process have in common.
type Shared struct {
	// As returns the identity of a user, or of the process itself if user is empty, with the
	// caches of a tenant. It is valid until release is called.
	As       func(user, tenant string) (id *Identity, release func(), err error)
	Resolver *kinds.Resolver

	Pool   *runner.Pool        // if nil, the number of workers is unlimited
	Budget *share.Budget       // if nil, memory is unlimited
	CPUs   *share.CPUScheduler // schedules the CPUs between modules
	// Codes shares compiled code between modules; if nil, code is not shared.
	Codes *host.Codes
	// Watchdog interrupts calls of modules that do not return; if nil, there is no
	// watchdog.
	Watchdog *share.Watchdog
	// Compile compiles modules outside of this process; if nil, this process compiles them.
	Compile  func(context.Context, load.Compilation) error
	CacheDir string // of compiled modules; if empty, they are not cached
	CacheKey []byte // authenticates the files in CacheDir and of Options.Memo
	OnForged func() // is called if a file in CacheDir fails authentication; may be nil
	// Isolation returns the process of a class of modules; nil if the program has no such
	// processes.
	Isolation func(class string) isolate.Isolation
	Gate      *leader.Gate // nil without an election
	// Member shares the objects with other replicas; if nil, this process reconciles all of
	// them.
	Member *shard.Member
	// Registrar detects other groups of replicas that run the same objects; nil without an
	// election.
	Registrar *leader.Registrar
	// Notes stores the state of modules that replicas and restarts share; if nil, no state
	// is shared.
	Notes ledger.Notes
	// OnProven, if not nil, is called with each module that is live and has passed its
	// probation.
	OnProven func(controller, digest string)

	Tracing *telemetry.Tracing // if nil, no traces are written
	Metrics *metrics.Registry  // if nil, no metrics are collected
	Ready   *health.Checks     // if nil, there are no health checks
	// OnSwap, if not nil, is called with the result of each swap.
	OnSwap func(controller, result string)
	// Record records an event of the host about a controller as a whole, which watches these
	// namespaces, and chooses the object that the event refers to. If nil, no event is recorded.
	Record func(watchedNamespaces []string, e events.Event)
}
