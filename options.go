package wasmctl

import (
	"context"
	"log/slog"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/canary"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// Options say what the controllers of a Runtime share. The zero value works.
type Options struct {
	// Logger gets the logs of all controllers; nil drops them.
	Logger *slog.Logger
	// Version is that of the program, for metrics, traces and the user agent.
	Version string
	// Workers bounds the objects that are reconciled at a time; 0 does not.
	Workers int
	// MemoryBudget bounds the memory of all modules together in bytes; 0 does not:
	// then a module may take as much as its concurrency times its memory limit. The
	// command sets half of the container's memory.
	MemoryBudget int64
	// CPUs is how many modules compute at once; 0 is as many as Go uses.
	CPUs int
	// CacheDir keeps compiled modules; empty keeps none.
	CacheDir string
	// CacheKey authenticates what is in CacheDir, which is executed, and in the
	// directories of ControllerOptions.Memo. Without one no other user may have write
	// access there.
	CacheKey []byte
	// Compile compiles modules out of process; nil: this process does.
	Compile func(context.Context, host.Compilation) error
	// StateDir keeps which module of each controller is live, and which ones were
	// rolled back, for the next start; empty: a restart runs whatever it is given.
	// Replicas share that in the Lease of their election.
	StateDir string
	// Notes keep the same in another place, and take precedence. Nil leaves it to
	// StateDir and Election.
	Notes Notes
	// Hardening is what the program says of itself in wasmctl status.
	Hardening string
	// InsecureRegistries are hosts that the program speaks to without verified TLS;
	// wasmctl status names them.
	InsecureRegistries []string
	// Isolation returns the process of a class of modules, and a further one with
	// each call for "". Nil: no controller can ask for one.
	Isolation func(class string) host.Isolation
	// CacheCompression compresses the objects in the caches of watches that were not
	// read for a minute, but Secrets.
	CacheCompression bool
	// Election elects one of several replicas to reconcile, or shares the objects
	// between them; nil: this one reconciles all of them.
	Election *Election
	// Traces exports a trace of each run; nil: there are none.
	Traces sdktrace.SpanExporter
}

// Notes keep a text for each key, of at most some KiB. A key that was not set has
// the empty one.
type Notes = ledger.Notes

// NoteKey is the key of what Notes keep of a controller.
func NoteKey(controller string) string { return ledger.Key(controller) }

// Election is the Lease by which one of several replicas is elected, or by which they
// share the objects. Durations that are zero are those of Kubernetes' own components.
type Election struct {
	// Namespace is the pod's where it is empty. Name is needed.
	Namespace, Name                           string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Shards, if not 0, is how many parts the objects are split into, at most 256,
	// which the replicas share: all of them reconcile.
	Shards int
}

// ControllerOptions say what one controller is. Where they say nothing, the
// module's manifest decides, and then a default.
type ControllerOptions struct {
	// Name is the controller's (default: the manifest's, else the module's).
	Name string
	// Controller is which one of a module's controllers this is, where it has several
	// (default: the one of that name).
	Controller string
	// For is the kind to reconcile, Owns are kinds whose owner is reconciled when
	// they change, each in any form that kubectl takes.
	For  string
	Owns []string
	// Namespaces are watched, and without a grant's rules the module may act in no
	// others. AllNamespaces overrides those of the manifest.
	Namespaces    []string
	AllNamespaces bool
	// Selector and FieldSelector select the objects to reconcile, and Predicates hide
	// changes that are none of these.
	Selector, FieldSelector string
	Predicates              []string
	// Grant is what the module may do.
	Grant Grant
	// Confine, if not empty, is the only namespace that the module reaches, whatever
	// manifest and Grant say: it watches, reads and writes no other, and nothing that
	// is cluster-scoped.
	Confine string
	// SignedBy are fingerprints of keys, as package signature has them: one of these
	// must have signed each module. None: nobody must. A Module that implements Signed
	// shows who has.
	SignedBy []string
	// As is the user as whom requests are sent; empty is that of the rest.Config.
	As string
	// DryRun changes nothing: DryRunServer asks the API server what each write would
	// change, DryRunClient sends none.
	DryRun kubeapi.DryRun
	// Audit lets the module do whatever the API server allows, and is given the least
	// grant that allows what it did, again whenever that grows.
	Audit func(grant []byte) error

	// Triggers lead to reconciles for other reasons than watches.
	Triggers []trigger.Source
	// Debounce waits until an object has not been triggered for a time.
	Debounce scheduler.Debounce
	// Concurrency is how many objects are reconciled at a time (default: 4).
	Concurrency int
	// Limits are those of the module; its manifest may lower them. FuelRate bounds its
	// work in a second.
	Limits   host.Limits
	FuelRate int64
	// Isolate names the class of modules in whose process this one is: IsolateAlone
	// for a process of its own, empty for the Runtime's.
	Isolate string
	// Settings are those of the module, over those of its manifest.
	Settings map[string]string
	// DrainTimeout is how long running reconciles may go on after a stop (default:
	// 30s).
	DrainTimeout time.Duration

	// ShardBy is what the objects are split by where replicas share them, ShardByUID or
	// ShardByNamespace, where it is to differ from what the module allows at least. The
	// first replica of all decides.
	ShardBy string

	// Whole keeps the objects together where replicas share those of others: each
	// replica that has the controller runs all of them.
	Whole bool

	// Probation is how long a module that was swapped in must do no worse than the
	// one before, which else takes over again; 0 is none.
	Probation time.Duration
	// Canary says on which objects a module is tried first that is swapped in; nil:
	// on none.
	Canary *Canary
	// Reconcile says which objects are reconciled after a swap.
	Reconcile Reconcile
	// AllowMoreRights lets a module that is swapped in have capabilities that the
	// first one does not have.
	AllowMoreRights bool

	// Memo says where runs that changed nothing are remembered, so that they are
	// skipped while nothing that they read changes: MemoMemory, or a directory, which
	// outlasts the process and is authenticated with Options.CacheKey. MemoOff and
	// empty run all. It is right for modules whose runs depend on nothing else.
	Memo string
	// History is how much memory the last runs may take, in bytes.
	History int
	// OnWrite is notified of each write, by several goroutines at once.
	OnWrite func(Write)
}

// Values of ControllerOptions.ShardBy.
const (
	ShardByUID       = plan.ByUID
	ShardByNamespace = plan.ByNamespace
)

// Values of ControllerOptions.Memo that are no directory.
const (
	MemoOff    = engine.MemoOff
	MemoMemory = engine.MemoMemory
)

// IsolateAlone is the class of ControllerOptions.Isolate that a module is alone in.
const IsolateAlone = engine.IsolateAlone

// Write is a write that the API server has answered, with what it has changed.
type Write = telemetry.Write

// Canary says on which objects a module is tried first, and for how long.
type Canary = rollout.Canary

// ParseCanary reads a share ("10%", or "off"), namespaces and a label selector,
// each of which may be empty, and for how long the canary lasts; 0 until Promote.
func ParseCanary(share string, namespaces []string, selector string, d time.Duration) (Canary, error) {
	return rollout.ParseCanary(share, namespaces, selector, d)
}

// Share is the Canary on a share of the objects, 0 to 1, until it is promoted.
func Share(share float64) *Canary { return &Canary{Config: canary.Config{Share: share}} }

// Reconcile says which objects are reconciled after a swap.
type Reconcile = rollout.Reconcile

// The values of Reconcile; the zero value is ReconcileAll.
const (
	ReconcileAll     = rollout.ReconcileAll
	ReconcileNone    = rollout.ReconcileNone
	ReconcileChanged = rollout.ReconcileChanged // those whose last result the swap puts in doubt
)

// SwapOptions say how a module is swapped in: Canary, where it is not nil, is in
// the place of the controller's, and Force tries one again that was rolled back.
// The zero value does as the controller's options say.
type SwapOptions = rollout.SwapOptions

// Grant is what a module may do. The zero Grant is what the options name: to
// watch the kinds of For and Owns, and to write the status of the first.
type Grant = plan.Grant

// GrantManifest accepts all that the module's manifest asks for.
var GrantManifest = Grant{Manifest: true}

// ParseGrant reads a file of grants (docs/capabilities.md). The path is for
// errors, which match ErrUsage.
func ParseGrant(path string, content []byte) (Grant, error) { return plan.ParseGrant(path, content) }

// GrantRules is the Grant of these rules.
func GrantRules(rules ...abi.Capability) Grant {
	return Grant{File: grant.File{{Capabilities: rules}}, Path: "rules"}
}

// engine is what the options say of a controller with a module.
func (o *ControllerOptions) engine(m Module) engine.Options {
	out := engine.Options{
		Options: plan.Options{
			For: o.For, Owns: o.Owns, Namespaces: o.Namespaces, AllNamespaces: o.AllNamespaces,
			Selector: o.Selector, FieldSelector: o.FieldSelector, Predicates: o.Predicates, Grant: o.Grant, Confine: o.Confine,
			Signed: plan.Signed{By: o.SignedBy},
		},
		Name: o.Name, Fallback: NameOf(m), Controller: o.Controller, Source: m.String(), As: o.As, DryRun: o.DryRun, Audit: o.Audit,
		Triggers: o.Triggers, Debounce: o.Debounce, Concurrency: o.Concurrency, Limits: o.Limits, FuelRate: o.FuelRate, Isolate: o.Isolate,
		DrainTimeout: o.DrainTimeout, ShardBy: o.ShardBy, Whole: o.Whole, Settings: o.Settings, Memo: o.Memo, History: o.History, OnWrite: o.OnWrite,
		Rollout: rollout.Options{Probation: probation.Config{Time: o.Probation}, Reconcile: o.Reconcile, AllowMoreRights: o.AllowMoreRights},
	}
	if o.Canary != nil {
		out.Rollout.Canary = *o.Canary
	}
	return out
}
