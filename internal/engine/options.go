package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// IsolateAlone is the class of Options.Isolate that a module is alone in.
const IsolateAlone = "controller"

// Options say what one controller is. A field means what the one of this name
// means in wasmctl.ControllerOptions.
type Options struct {
	plan.Options

	Name string
	// Fallback is the name where neither Name nor the manifest says one.
	Fallback   string
	Controller string
	// Source says for people where the module comes from.
	Source string
	As     string
	DryRun kubeapi.DryRun
	Audit  func(grant []byte) error

	Triggers     []trigger.Source
	Debounce     scheduler.Debounce
	Concurrency  int
	Limits       host.Limits
	FuelRate     int64
	Isolate      string
	DrainTimeout time.Duration
	ShardBy      string
	Whole        bool
	Settings     map[string]string

	Rollout rollout.Options
	Memo    string
	History int
	OnWrite func(telemetry.Write)
}

// Shared is what the controllers of a process share.
type Shared struct {
	// As returns the identity of a user, "" for the process itself, until release.
	As       func(user string) (id *Identity, release func(), err error)
	Resolver *kinds.Resolver

	Pool   *runner.Pool       // nil: workers are not bounded
	Budget *host.Budget       // nil: memory is not bounded
	CPUs   *host.CPUScheduler // of the CPUs
	// Codes shares compiled code between modules; nil does not.
	Codes *host.Codes
	// Watchdog notices calls of modules that do not end; nil does not.
	Watchdog *host.Watchdog
	// Compile compiles modules out of process; nil: this process does.
	Compile  func(context.Context, host.Compilation) error
	CacheDir string // of compiled modules; empty keeps none
	CacheKey []byte // authenticates what is in CacheDir, and what Options.Memo keeps
	OnForged func() // is notified of what is not used there; nil: nobody is
	// Isolation returns the process of a class of modules; nil: there is none.
	Isolation func(class string) host.Isolation
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
