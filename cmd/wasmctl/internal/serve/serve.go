// SPDX-License-Identifier: Apache-2.0

// Package serve runs the modules of Reconcilers and ClusterReconcilers. It is a native reconciler on
// the same runtime as its modules. Each object has a unit, which adapts one controller to the spec and
// reports the progress in the status.
package serve

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// Config has the options of a Server.
type Config struct {
	// Cluster is the host's own configuration.
	Cluster *rest.Config
	// Registry returns the options for registries, without credentials. Each module must pass their
	// Verify, and then the policy of the spec.
	Registry func() oci.Options
	// Allow are the references that a spec can name. If PublicRegistries is true, the registries that it does not name
	// must have public addresses.
	Allow            oci.Allow
	PublicRegistries bool
	// MinFollow is the minimum interval at which a followed tag is looked at.
	MinFollow time.Duration
	// Namespaces are the namespaces whose Reconcilers are served. If empty, all Reconcilers and
	// ClusterReconcilers are served.
	Namespaces []string
	// ServiceAccount is the service account of Reconcilers that name none.
	ServiceAccount string
	// Bounds limit the options that a spec can set.
	Bounds v1alpha1.Bounds
	// Isolation determines which modules run in guest processes.
	Isolation Isolation
	// Memo is the Memo option of each controller.
	Memo string
	// ShareObjects makes each replica run all Reconcilers, for a part of their objects. If false, each
	// Reconciler runs on exactly one replica. It has no effect without several replicas.
	ShareObjects bool
	Log          *slog.Logger
}

// lookLimit is the maximum duration of one look, which may download a module.
const lookLimit = 10 * time.Minute

// Bounds of the modules that are fetched at a time, of all tenants and of one.
const maxFetches, maxFetchesEach = 64, 8

// Finalizer keeps a Reconciler until its objects are released, and its controller has ended. It also keeps the rights of a process while
// Reconcilers have it.
const Finalizer = v1alpha1.Group + "/serve"

// Server serves Reconcilers. Its methods are safe for concurrent use.
type Server struct {
	cfg    Config
	client dynamic.Interface
	kinds  *kinds.Resolver
	rt     *wasmctl.Runtime
	turns  *share.Turns // of fetches, which wait for registries
	files  *files

	tenants tenants

	mu      sync.Mutex
	units   map[id]*unit                   // guarded by mu
	natives map[string]*wasmctl.Controller // the reconcilers of the Server, by kind; guarded by mu
}

// id names an object.
type id struct {
	kind string
	abi.Key
}

// New returns a Server. It implements wasmctl.Notes, which its Runtime needs.
func New(cfg Config) (*Server, error) {
	cfg.Cluster = rest.CopyConfig(cfg.Cluster)
	cfg.Cluster.QPS = -1 // the API server's priority and fairness decides
	client, err := dynamic.NewForConfig(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	source, err := kubeapi.NewClient(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	return &Server{
		cfg: cfg, client: client, kinds: kinds.NewResolver(source, cfg.Log), turns: share.NewTurns(maxFetches, maxFetchesEach), files: newFiles(),
		units: map[id]*unit{}, natives: map[string]*wasmctl.Controller{},
	}, nil
}

// Start adds the reconcilers of both kinds to a Runtime: it waits for their CRDs
// until ctx ends.
func (s *Server) Start(ctx context.Context, rt *wasmctl.Runtime) error {
	s.rt = rt
	for _, kind := range s.served() {
		n := wasmctl.Native{
			Name: NativeName(kind), Unpooled: true, Finalizer: Finalizer, Install: "wasmctl crds | kubectl apply -f -",
			For: abi.Watch{
				Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: kind,
				Predicates: []string{"generation", "annotations", "deletion"}, // not its own status
				Deletes:    true,                                              // a user who may delete may remove the finalizer
			},
			Reconcile: func(ctx context.Context, r *wasmctl.Request) (wasmctl.Action, error) {
				return s.reconcile(ctx, kind, r)
			},
			Finalize: func(ctx context.Context, r *wasmctl.Request) (wasmctl.Action, error) {
				return s.finalize(ctx, kind, r)
			},
			Moved: func(has func(uid string) bool) { s.moved(kind, has) },
		}
		if s.cfg.ShareObjects {
			n.For.Predicates = nil // the status records the rollbacks of other replicas
		}
		o := wasmctl.ControllerOptions{Unshared: s.cfg.ShareObjects, Triggers: []wasmctl.Trigger{wasmctl.ReconcileOnSource(counts{s, kind}), wasmctl.ReconcileOnSource(interrupts{s, kind})}}
		// A look waits only for its own Reconciler, in a turn of its tenant, so that no look delays those of others.
		o.Concurrency, o.Limits = new(int32(runner.MaxConcurrency)), v1alpha1.Limits{string(abi.LimitTimeout): intstr.FromString(lookLimit.String())}
		if kind == v1alpha1.KindNamespaced {
			o.Namespaces = s.cfg.Namespaces
		}
		c, err := rt.Add(ctx, n, o)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.natives[kind] = c
		s.mu.Unlock()
		if feed := logging.FeedOf(c.Logger()); feed != nil {
			feed.Level.Set(slog.LevelWarn) // it looks at each Reconciler repeatedly
		}
	}
	return nil
}

// served returns the kinds that the Server serves.
func (s *Server) served() []string {
	if len(s.cfg.Namespaces) > 0 {
		return []string{v1alpha1.KindNamespaced}
	}
	return []string{v1alpha1.KindNamespaced, v1alpha1.KindCluster}
}

// reconcile adapts a unit to its spec, and writes its status. It requests another call, soon if work is
// in progress.
func (s *Server) reconcile(ctx context.Context, kind string, r *wasmctl.Request) (wasmctl.Action, error) {
	if r.Object == nil {
		return wasmctl.Action{}, s.remove(ctx, id{kind, r.Key}, true)
	}
	u, o, err := s.current(ctx, kind, r)
	if u == nil {
		return wasmctl.Action{Requeue: true}, err
	}
	looking, end := u.begin(ctx, o)
	defer end()
	in := u.look(looking, o)
	if isOutdated(looking) {
		return wasmctl.Action{Requeue: true, After: soon}, nil
	}
	if err := s.write(ctx, o, next(o.status, in, time.Now())); err != nil {
		return wasmctl.Action{}, err
	}
	return wasmctl.Action{Requeue: true, After: u.pause(in)}, nil
}

// current returns the unit of the object of a request, and the object. If the unit is that of an earlier object of this name, current
// removes the unit, and returns nil.
func (s *Server) current(ctx context.Context, kind string, r *wasmctl.Request) (*unit, *reconciler, error) {
	o, err := read(kind, r.Decode)
	if err != nil {
		return nil, nil, err
	}
	if u := s.unit(o); u.uid == o.meta.UID {
		return u, o, nil
	}
	return nil, nil, s.remove(ctx, o.id(), true)
}

// unit returns the unit of an object.
func (s *Server) unit(o *reconciler) *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.units[o.id()]
	if u == nil {
		u = &unit{server: s, uid: o.meta.UID, log: s.log(o).With("reconciler", o.controller())}
		s.units[o.id()] = u
	}
	if u.uid == o.meta.UID {
		u.setObject(o)
	}
	return u
}

// log returns the logger for lines about an object, which are charged to its tenant.
func (s *Server) log(o *reconciler) *slog.Logger { return logging.ForTenant(s.cfg.Log, o.tenant()) }

// remove ends the controller of an object. If hurry is set, it interrupts runs that do not end soon.
func (s *Server) remove(ctx context.Context, of id, hurry bool) error {
	s.mu.Lock()
	u := s.units[of]
	s.mu.Unlock()
	if u == nil {
		return nil
	}
	u.life.Lock() // an object may be deleted and move to another replica at the same time
	defer u.life.Unlock()
	if err := u.stop(ctx, hurry); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units[of] == u {
		delete(s.units, of)
	}
	return nil
}

// moved ends the controllers of objects that move to another replica.
func (s *Server) moved(kind string, has func(uid string) bool) {
	s.mu.Lock()
	var gone []id
	for of, u := range s.units {
		if of.kind == kind && has(string(u.uid)) {
			gone = append(gone, of)
		}
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, of := range gone {
		wg.Go(func() { _ = s.remove(context.Background(), of, false) }) // it fails only if the context ends
	}
	wg.Wait()
}

// Note implements wasmctl.Notes. The note of a controller is in the status of its object.
func (s *Server) Note(_ context.Context, key string) (string, error) {
	if u := s.byKey(key); u != nil {
		return u.record(), nil
	}
	return "", nil
}

// SetNote implements wasmctl.Notes.
func (s *Server) SetNote(ctx context.Context, key, value string) error {
	u := s.byKey(key)
	if u == nil {
		return nil // a reconciler of the Server itself
	}
	o := u.setRecord(value)
	return s.patch(ctx, o, map[string]any{"metadata": map[string]any{"uid": o.meta.UID}, "status": map[string]any{"record": value}})
}

func (s *Server) byKey(key string) *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.units {
		if wasmctl.NoteKey(u.object().controller()) == key {
			return u
		}
	}
	return nil
}
