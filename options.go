// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"log/slog"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/telemetry"
)

// Options configure the parts that the controllers of a Runtime share. The zero value
// works.
type Options struct {
	// Logger receives the logs of all controllers; if nil, they are discarded.
	Logger *slog.Logger
	// Version is the version of the program, for metrics, traces and the user agent.
	Version string
	// Workers limits the number of objects that are reconciled at a time; 0 means
	// unlimited.
	Workers int
	// MemoryBudget limits the memory of all modules together, in bytes. If it is 0, each
	// module may use its concurrency times its memory limit. The command sets half of the
	// container's memory.
	MemoryBudget int64
	// TenantMemory limits the memory of each tenant in the MemoryBudget, in bytes; 0 means that
	// a tenant may use all that others leave.
	TenantMemory int64
	// CPUs is the number of modules that compute at the same time; 0 means GOMAXPROCS.
	CPUs int
	// CacheDir is the directory of compiled modules; if empty, they are not cached.
	CacheDir string
	// CacheKey authenticates the files in CacheDir, which are executed, and in the
	// directories of the spec's Memo. Without a key, no other user may have write access
	// there.
	CacheKey []byte
	// Compile compiles modules outside of this process; if nil, this process compiles them.
	Compile func(context.Context, load.Compilation) error
	// StateDir is the directory that stores, for the next start, which module of each
	// controller is live and which ones were rolled back; if empty, a restart runs any
	// module that it is given. Replicas share this state in the Lease of their election.
	StateDir string
	// Notes, if not nil, stores the same state elsewhere, and takes precedence over
	// StateDir and Election.
	Notes Notes
	// Hardening describes the rights that the program has given up, for wasmctl status.
	Hardening string
	// InsecureRegistries are the registries that the program uses without verified TLS, for
	// wasmctl status.
	InsecureRegistries []string
	// Isolation returns the process of a class of modules, or a new one at each call if
	// class is empty. If it is nil, the spec's Isolate is an error.
	Isolation func(class string) isolate.Isolation
	// CacheCompression compresses cached objects that have not been read for a minute,
	// except Secrets.
	CacheCompression bool
	// Tenants limits the caches of each tenant.
	Tenants TenantLimits
	// WatchBackoff is the delay between the failed requests of a watch, which controllers
	// share. The zero value is 0.8 s, which doubles with each failure up to 30 s.
	WatchBackoff Backoff
	// Election elects one of several replicas to reconcile, or shares the objects between
	// them. If it is nil, this process reconciles all objects.
	Election *Election
	// Webhooks serves the webhooks of modules. If it is nil, they are not served.
	Webhooks *Webhooks
	// Traces exports a trace of each run; may be nil.
	Traces sdktrace.SpanExporter
}

// TenantLimits limit the watches of all controllers of one Tenant together; 0 is no limit. A watch
// beyond them is refused, and starts when the others need less. A controller that is its own
// tenant has no limits.
type TenantLimits struct {
	Cache   int64 // bytes of cached objects
	Watches int
}

// Backoff is a delay that is First, and doubles with each failure up to Max, which is at most a
// minute. A random part of up to the same length is added. A field that is 0 has its default.
type Backoff struct{ First, Max time.Duration }

// NoteKey returns the key of a controller's state in Notes.
func NoteKey(controller string) string { return ledger.Key(controller) }

// Election configures the Lease by which one of several replicas is elected, or by which
// they share the objects. Durations that are zero have the defaults of Kubernetes' own
// components.
type Election struct {
	// Namespace is the pod's namespace if empty. Name is required.
	Namespace, Name                           string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// NameOfModule reports whether Name comes from the name of a module, so that a user has not
	// chosen it. Two groups with such names do not run the same objects: the later one ends with
	// ErrLeaseLost.
	NameOfModule bool
	// ExitOnLapse makes Run end with ErrLeaseLost if the lease could not be renewed in time.
	// Otherwise, runs wait until it can be renewed; Run ends only if another replica has taken
	// the lease and this one cannot join again.
	ExitOnLapse bool
	// Shards, if not 0, is the number of parts, at most 256, into which the objects are
	// split between the replicas, all of which reconcile.
	Shards int
}

// ControllerOptions configure one controller: a spec, which is plain data, and fields that
// only a program can set.
type ControllerOptions struct {
	v1alpha1.ControllerSpec

	// Tenant is charged with everything that the process does for this controller, and has
	// one fair share together with its other controllers. If empty, the controller is its
	// own tenant.
	Tenant string
	// Secrets are the values in Config that come from Secrets. They are hidden in logs, errors,
	// status and histories, like values that the module reads from Secrets.
	Secrets []string
	// Documents is the content of the spec's GrantFile, as grant.Parse returns it, in place
	// of the spec's Grant.
	Documents grant.File
	// Confine, if not empty, is the only namespace that the module may watch, read and
	// write, regardless of the manifest and the grant. It has no access to cluster-scoped
	// objects.
	Confine string
	// WebhookPrefix precedes the paths of the module's webhooks, such as "/team-a.app". It separates
	// the modules of tenants. If it is empty, a path belongs to the controller that had it first.
	WebhookPrefix string
	// Unshared excludes the controller from sharing if replicas share objects: each replica
	// that has the controller reconciles all of its objects.
	Unshared bool
	// NoSwapEvents omits the Kubernetes events about the results of swaps, for a program that reports
	// them itself, with Runtime.Record.
	NoSwapEvents bool
	// Triggers trigger reconciles in addition to watches and to the triggers of the spec.
	Triggers []Trigger
	// Audit allows the module everything that the API server allows. It is called with the
	// least grant for the requests of the module, and again whenever that grows.
	Audit func(grant []byte) error
	// OnWrite is called for each write, concurrently by several goroutines.
	OnWrite func(Write)
}

// engine returns the options of a controller with a module. The error matches ErrUsage.
func (o *ControllerOptions) engine(m Module) (engine.Options, error) {
	out := engine.Options{
		Options:  plan.Options{ControllerSpec: o.ControllerSpec, Confine: o.Confine},
		Fallback: NameOf(m), Source: m.String(), Triggers: sources(o.Triggers), Unshared: o.Unshared, NoSwapEvents: o.NoSwapEvents, Audit: o.Audit,
	}
	if o.OnWrite != nil {
		out.OnWrite = func(w telemetry.Write) { o.OnWrite(Write(w)) }
	}
	errs := out.Validate(nil)
	if err := v1alpha1.Errors(errs, func(path string) string { return path }); err != nil {
		return out, failure.Usage.Wrap(err)
	}
	out.Default()
	keys, _ := out.Module.Verify.Policy(nil) // Validate has checked it
	out.Signed.By = keys.Fingerprints()
	out.Settings, _ = out.Config.Texts() // Validate has checked it
	var err error
	out.Grant, err = plan.GrantOf(&out.ControllerSpec, o.Documents)
	return out, err
}
