package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// Options say what one controller is. The spec has its defaults.
type Options struct {
	plan.Options

	// Fallback is the name if neither the spec nor the manifest has one.
	Fallback string
	// Source says for people where the module comes from.
	Source string
	// Settings are the spec's Config as texts. The loop owns them once the controller runs.
	Settings map[string]string
	// Triggers lead to reconciles in addition to those of the spec.
	Triggers []trigger.Source
	// Whole keeps the objects together if replicas share those of other controllers.
	Whole   bool
	Audit   func(grant []byte) error
	OnWrite func(telemetry.Write)
}

// limits returns the limits of the spec, which is valid.
func (o *Options) limits() (l share.Limits) {
	values, _ := o.Limits.Parse(nil)
	for name, v := range values {
		l.Set(abi.LimitName(name), v)
	}
	l.FuelRate = values[v1alpha1.LimitFuelRate]
	return l
}

// concurrency returns the concurrency of the spec; 0 leaves it to the manifest.
func (o *Options) concurrency() int {
	if o.Concurrency == nil {
		return 0
	}
	return int(*o.Concurrency)
}

// dryRun returns how writes are tried.
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

// triggers returns the sources of the spec, which is valid, and those of the program.
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

// Shared is what the controllers of a process share.
type Shared struct {
	// As returns the identity of a user, "" for the process itself, until release.
	As       func(user string) (id *Identity, release func(), err error)
	Resolver *kinds.Resolver

	Pool   *runner.Pool        // nil: workers are not bounded
	Budget *share.Budget       // nil: memory is not bounded
	CPUs   *share.CPUScheduler // of the CPUs
	// Codes shares compiled code between modules; nil does not.
	Codes *host.Codes
	// Watchdog notices calls of modules that do not end; nil does not.
	Watchdog *share.Watchdog
	// Compile compiles modules out of process; nil: this process does.
	Compile  func(context.Context, load.Compilation) error
	CacheDir string // of compiled modules; empty keeps none
	CacheKey []byte // authenticates what is in CacheDir, and what Options.Memo keeps
	OnForged func() // is notified of what is not used there; nil: nobody is
	// Isolation returns the process of a class of modules; nil: there is none.
	Isolation func(class string) isolate.Isolation
	Gate      *leader.Gate // nil without an election
	// Member shares the objects with other replicas; nil: this one runs all of them.
	Member *shard.Member
	// Notes is what replicas and restarts share of modules; nil: nothing is.
	Notes ledger.Notes
	// OnProven, if not nil, is called with each module that is live and not on
	// probation.
	OnProven func(controller, digest string)

	Tracing *telemetry.Tracing // nil: no traces are written
	Metrics *metrics.Registry  // nil: nothing is counted
	Ready   *health.Checks     // nil: nobody asks
	// OnSwap, if not nil, is called with the result of each swap.
	OnSwap func(controller, result string)
	// EventsAbout is what events about a controller as a whole are about.
	EventsAbout func(watchedNamespaces []string) corev1.ObjectReference
}
