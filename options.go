package wasmctl

import (
	"context"
	"log/slog"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/telemetry"
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
	Compile func(context.Context, load.Compilation) error
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
	Isolation func(class string) isolate.Isolation
	// CacheCompression compresses the objects in the caches of watches that were not
	// read for a minute, but Secrets.
	CacheCompression bool
	// WatchBackoff is the delay between the failed requests of a watch, which controllers
	// share. The zero value is 0.8 s, which doubles with each failure up to 30 s.
	WatchBackoff Backoff
	// Election elects one of several replicas to reconcile, or shares the objects
	// between them; nil: this one reconciles all of them.
	Election *Election
	// Traces exports a trace of each run; nil: there are none.
	Traces sdktrace.SpanExporter
}

// Backoff is a delay that is First, and doubles with each failure up to Max, which is at most a
// minute. A random part of up to the same length is added. A field that is 0 has its default.
type Backoff struct{ First, Max time.Duration }

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

// ControllerOptions say what one controller is: its spec, which is plain data, and what
// only a program can give it.
type ControllerOptions struct {
	v1alpha1.ControllerSpec

	// Grants, if it is not zero, is what the module may do, in place of the spec's Grant.
	Grants Grant
	// Confine, if not empty, is the only namespace that the module reaches, whatever
	// manifest and grant say: it watches, reads and writes no other, and nothing that
	// is cluster-scoped.
	Confine string
	// Whole keeps the objects together if replicas share those of other controllers: each
	// replica that has the controller runs all of them.
	Whole bool
	// Triggers lead to reconciles in addition to watches and to those of the spec.
	Triggers []Trigger
	// Audit lets the module do whatever the API server allows, and is given the least
	// grant that allows what it did, again whenever that grows.
	Audit func(grant []byte) error
	// OnWrite is notified of each write, by several goroutines at once.
	OnWrite func(Write)
}

// engine returns the options of a controller with a module. The error matches ErrUsage.
func (o *ControllerOptions) engine(m Module) (engine.Options, error) {
	out := engine.Options{
		Options:  plan.Options{ControllerSpec: o.ControllerSpec, Grant: plan.Grant(o.Grants), Confine: o.Confine},
		Fallback: NameOf(m), Source: m.String(), Triggers: sources(o.Triggers), Whole: o.Whole, Audit: o.Audit,
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
	if !out.Grant.IsZero() {
		return out, nil
	}
	var err error
	out.Grant, err = plan.GrantOf(&out.CommonSpec, o.Mode == v1alpha1.ModeAudit)
	return out, err
}
