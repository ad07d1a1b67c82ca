// SPDX-License-Identifier: Apache-2.0

// Package registration registers the webhooks of a group of replicas with the API server: the two webhook configurations, the conversions of
// CRDs, and the certificates that they trust.
//
// Every replica does this, without a leader. Each reads the objects, then the record of all replicas, and writes an object only if nobody has
// changed it meanwhile. So no replica removes the certificate of another one that it does not know yet.
package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/wasmctl/wasmctl/runtime/webhook"
	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
)

// fieldManager is that of all writes.
const fieldManager = "wasmctl-webhooks"

const (
	// poll is how often the objects are compared without a reason.
	poll = 30 * time.Second
	// look is how often the routes of the controllers are compared, which takes no request.
	look = time.Second
	// probe is how often the server is called, at least, until it has answered.
	probe = 5 * time.Second
	// settled is how long webhooks of controllers that are not known yet remain registered after a start.
	settled = time.Minute
	// leave is how long certificates of replicas that have left remain trusted.
	leave = 10 * time.Minute
	// endTimeout limits the requests after a stop.
	endTimeout = 10 * time.Second
	// requestTimeout limits a request, so that a lost connection cannot stop the loop.
	requestTimeout = 10 * time.Second
	// maxAttempts is how often a round is repeated at once.
	maxAttempts = 5
	// maxRefused is the maximum number of refused webhooks that are remembered.
	maxRefused = 1000
)

// Config configures a Registrar.
type Config struct {
	Options

	// RESTConfig is the configuration of the API server's client.
	RESTConfig *rest.Config
	// Namespace is that of the record of the replicas, the ConfigMap Options.Name.
	Namespace string
	// Replica names this process. No two processes have the same name; a process that is restarted should have its name again.
	Replica string
	// Authority makes the certificate of this replica. If nil, the caBundle of each object is left alone.
	Authority *certs.Authority
	// Server has the controllers.
	Server *webhook.Server
	// Logger logs what is registered. If nil, nothing is logged.
	Logger *slog.Logger
}

// Registrar registers webhooks. Run is its only loop, which owns everything except for view.
type Registrar struct {
	cfg    Config
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	record *record

	leftovers certs.Leftovers
	resources map[schema.GroupKind]schema.GroupResource // those that were found
	refused   map[string]error                          // the webhooks that the API server has refused, by key
	published member                                    // as written last
	opened    time.Time                                 // when the server has answered; zero before
	served    map[string]bool                           // URL paths of webhooks that this process had soon after its start
	absent    map[string]time.Time                      // since when the converter of a CRD is absent, by the name of the CRD
	last      attempt
	logged    string // the last problem that was logged

	view atomic.Pointer[view] // after the last round; nil before the first one
}

// New returns a Registrar. It sends nothing; Run does.
func New(cfg Config) (*Registrar, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	rc := rest.CopyConfig(cfg.RESTConfig)
	rc.Timeout = requestTimeout
	client, err := dynamic.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("webhook registration: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("webhook registration: %w", err)
	}
	return &Registrar{
		cfg: cfg, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)),
		record:    &record{client: client.Resource(configMaps).Namespace(cfg.Namespace), name: cfg.Name, replica: cfg.Replica},
		leftovers: certs.Leftovers{}, resources: map[schema.GroupKind]schema.GroupResource{}, refused: map[string]error{}, served: map[string]bool{},
		absent: map[string]time.Time{},
	}, nil
}

// Ready returns an error until the API server can call this replica. It then says why.
func (r *Registrar) Ready() error {
	if r.cfg.Authority == nil {
		return nil
	}
	err := r.cfg.Authority.Ready()
	if p := r.Problem(); err != nil && p != nil {
		err = fmt.Errorf("%w: %w", err, p)
	}
	return err
}

// Run registers the webhooks until ctx ends. If no other replica runs, it then removes the configurations. The server must serve until Run
// returns.
func (r *Registrar) Run(ctx context.Context) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var last []Source
	var next time.Time
	wait := look
	for ctx.Err() == nil {
		sources := r.sources()
		if now := time.Now(); !now.Before(next) || changed(last, sources) {
			err := r.round(ctx, sources)
			if ctx.Err() != nil {
				break
			}
			r.report(err)
			last, next, wait = sources, r.next(wait, err), min(2*wait, poll)
			if err == nil {
				wait = look
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return r.end(context.WithoutCancel(ctx))
}

// next returns when to compare the objects again.
func (r *Registrar) next(wait time.Duration, err error) time.Time {
	now := time.Now()
	at := now.Add(poll)
	switch {
	case r.opened.IsZero() && !r.cfg.BundlesOnly:
		at = now.Add(min(wait, probe))
	case err != nil:
		at = now.Add(wait)
	}
	if r.cfg.Authority != nil {
		if wake := r.cfg.Authority.Wake(now); wake.Before(at) {
			return wake
		}
	}
	return at
}

// report logs a problem, once until it changes.
func (r *Registrar) report(err error) {
	r.view.Store(&view{problem: err, general: r.last.general, states: r.last.states})
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == r.logged {
		return
	}
	if r.logged = text; err != nil {
		r.cfg.Logger.Warn("webhooks are not registered completely", "error", err)
	} else {
		r.cfg.Logger.Info("webhooks are registered")
	}
}

// sources returns the controllers as they are now, except those that have served nothing yet.
func (r *Registrar) sources() []Source {
	entries := r.cfg.Server.Backends()
	sources := make([]Source, 0, len(entries))
	for _, e := range entries {
		if routes := e.Backend.Routes(); routes != nil {
			sources = append(sources, Source{Entry: e, Routes: routes})
		}
	}
	return sources
}

// changed reports whether other things are served than before.
func changed(was, now []Source) bool {
	if len(was) != len(now) {
		return true
	}
	for i := range was {
		if was[i].Prefix != now[i].Prefix || was[i].Controller != now[i].Controller || was[i].Routes != now[i].Routes {
			return true
		}
	}
	return false
}

// resolve finds the resources of the kinds that controllers own. A kind that is not installed has no resource, and no requests.
func (r *Registrar) resolve(sources []Source) error {
	var errs []error
	for i := range sources {
		sources[i].Owned = nil
		for _, kind := range sources[i].Routes.Owned {
			resource, err := r.resource(kind)
			switch {
			case err == nil:
				sources[i].Owned = append(sources[i].Owned, resource)
			case !meta.IsNoMatchError(err):
				errs = append(errs, fmt.Errorf("controller[%s]: %w", sources[i].Controller, err))
			}
		}
	}
	return errors.Join(errs...)
}

// resource returns the resource of a kind. It remains the same for the life of the process.
func (r *Registrar) resource(kind schema.GroupKind) (schema.GroupResource, error) {
	if found, ok := r.resources[kind]; ok {
		return found, nil
	}
	mapping, err := r.mapper.RESTMapping(kind)
	if err != nil {
		return schema.GroupResource{}, fmt.Errorf("kind[%s]: %w", kind, err)
	}
	r.resources[kind] = mapping.Resource.GroupResource()
	return r.resources[kind], nil
}

// conversion is a conversion of a controller.
type conversion struct {
	name string // webhook.ConversionName
	path string // of its URL
}

// conversions returns the conversions of the controllers, by the name of the CRD.
func (r *Registrar) conversions(sources []Source) (list map[string]conversion, failed problems) {
	list, failed = map[string]conversion{}, problems{}
	if r.cfg.BundlesOnly {
		return list, failed
	}
	for i := range sources {
		s := &sources[i]
		for _, c := range s.Routes.Conversions {
			name := webhook.ConversionName(&c)
			if s.conflict(name) != "" {
				continue // the server reports it
			}
			resource, err := r.resource(schema.GroupKind{Group: c.Group, Kind: c.Kind})
			if err != nil {
				failed[name] = fmt.Errorf("controller[%s]: conversion: %w", s.Controller, err)
				continue
			}
			if _, taken := list[resource.String()]; !taken {
				list[resource.String()] = conversion{name, s.Prefix + webhook.ConvertPath}
			}
		}
	}
	return list, failed
}
