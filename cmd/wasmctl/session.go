package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// session is one module as a controller: it joins host and runtime. Its steps
// are load, checkAccess, checkSelectors, start; close undoes what was done.
type session struct {
	*process

	opts *runOptions
	log  *slog.Logger
	name string // of the controller

	settingsFile []byte // what --config-file had in it when it was first read

	module  *host.Module
	guests  applier.Module // what the controller acquires guests from: module
	cache   *controller.Cache
	api     *kubeapi.API
	policy  *kubeapi.Policy
	kind    watched   // the kind that is reconciled
	related []watched // those that it owns or watches
	late    []watched // optional ones that the API server does not have yet

	controller *controller.Controller
}

// watched is a kind and what the manifest says of its watch, under the flags.
type watched struct {
	kubeapi.Kind

	watch abi.Watch
	owned bool
}

// load loads the module. Between its manifest being known and the end of
// loading, kinds are resolved, which waits for API server and CRDs.
func (s *session) load(ctx context.Context, wasm []byte) error {
	o := s.opts
	settings, err := s.readSettings()
	if err != nil {
		return err
	}
	cfg := host.Config{
		Name: o.name, Fallback: moduleName(o.module), Concurrency: o.concurrency, Limits: host.Limits{Memory: o.memoryBytes, Timeout: o.timeout},
		CacheDir: s.cacheDir(), Logger: s.log, Settings: settings, Budget: s.budget,
	}
	o.cpu.apply(&cfg)
	cfg.Shares = s.shares
	cfg.API = func(m *abi.Manifest) (host.API, error) {
		s.name = cfg.NameFor(m)
		return s.connectModule(ctx, m)
	}
	if s.module, err = host.Load(ctx, wasm, cfg); err != nil {
		return moduleError(err)
	}
	s.guests = s.module
	return nil
}

// connectModule resolves the kinds of manifest and flags and builds the
// module's view of the cluster.
func (s *session) connectModule(ctx context.Context, m *abi.Manifest) (host.API, error) {
	if err := s.resolveKinds(ctx, m); err != nil {
		return nil, err
	}
	if err := s.elect(); err != nil {
		return nil, err
	}
	s.policy = kubeapi.NewModulePolicy(s.kind.Kind, s.kind.watch.Namespaces, m.Capabilities)
	s.cache = controller.NewCache()
	cfg := kubeapi.Config{
		Client: s.client, Resolver: s.resolver, Controller: s.name, Policy: s.policy, Logger: s.log, Cache: s.cache, Children: s.cache,
	}
	if s.elector != nil {
		cfg.Gate = s.elector.Gate()
	}
	var err error
	s.api, err = kubeapi.New(cfg)
	return s.api, err
}

// resolveKinds finds the kinds to watch. Flags win over the manifest.
func (s *session) resolveKinds(ctx context.Context, m *abi.Manifest) error {
	var err error
	switch {
	case s.opts.forKind != "":
		s.kind.Kind, err = s.resolver.Wait(ctx, s.opts.forKind, s.sayWaiting)
	case m.For != nil:
		s.kind.Kind, err = s.resolver.WaitGVK(ctx, gvk(m.For), s.sayWaiting)
	default:
		return withCode(exitUsage, errors.New("--for is needed: the module's manifest does not say what kind it is for"))
	}
	if err != nil {
		return kindError(err)
	}
	s.kind.watch = s.effectiveWatch(m)
	if len(s.kind.watch.Namespaces) > 0 && !s.kind.Namespaced {
		return withCode(exitUsage, fmt.Errorf("--namespace %s: %s is cluster-scoped; leave the namespace out", s.kind.watch.Namespaces[0], s.kind.Name()))
	}
	return s.resolveRelated(ctx, m)
}

func gvk(w *abi.Watch) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// resolveRelated finds the kinds that are owned and watched.
func (s *session) resolveRelated(ctx context.Context, m *abi.Manifest) error {
	for _, name := range s.opts.owns {
		k, err := s.resolver.Wait(ctx, name, s.sayWaiting)
		if err != nil {
			return kindError(err)
		}
		s.addRelated(k, abi.Watch{Map: "owner"}, true)
	}
	if len(s.opts.owns) == 0 {
		for _, w := range m.Owns {
			w.Map = "owner"
			if err := s.resolveWatch(ctx, w, true); err != nil {
				return err
			}
		}
	}
	for _, w := range m.Watches {
		if err := s.resolveWatch(ctx, w, false); err != nil {
			return err
		}
	}
	return nil
}

// resolveWatch finds the kind of one watch of the manifest. One that is
// optional is not waited for: see watchLate.
func (s *session) resolveWatch(ctx context.Context, w abi.Watch, owned bool) error {
	if w.Optional {
		k, err := s.resolver.ResolveGVK(ctx, gvk(&w))
		if errors.Is(err, kubeapi.ErrUnknownKind) {
			s.late = append(s.late, watched{watch: w, owned: owned})
			return nil
		}
		if err == nil {
			s.addRelated(k, w, owned)
			return nil
		}
	}
	k, err := s.resolver.WaitGVK(ctx, gvk(&w), s.sayWaiting)
	if err != nil {
		return kindError(err)
	}
	s.addRelated(k, w, owned)
	return nil
}

func (s *session) addRelated(k kubeapi.Kind, w abi.Watch, owned bool) {
	s.related = append(s.related, s.placed(watched{k, w, owned}))
}

// placed says in which namespaces a related kind is watched.
func (s *session) placed(k watched) watched {
	if k.watch.Map == "owner" {
		k.watch.Namespaces = s.ownedNamespaces(k.Kind, k.watch)
	}
	if !k.Namespaced {
		k.watch.Namespaces = nil
	}
	return k
}

// watchLate watches an optional kind as soon as the API server has it.
func (s *session) watchLate(ctx context.Context, late watched) {
	kind := gvk(&late.watch).GroupKind().String()
	s.log.Info("optional kind is not there yet: it will be watched when its CustomResourceDefinition is installed", "kind", kind, "controller", s.name)
	if err := s.addLate(ctx, late); err != nil && ctx.Err() == nil {
		s.log.Error("optional kind cannot be watched", "kind", kind, "error", err.Error(), "controller", s.name)
	}
}

func (s *session) addLate(ctx context.Context, late watched) error {
	var err error
	if late.Kind, err = s.resolver.WaitGVK(ctx, gvk(&late.watch), func(error) {}); err != nil {
		return err
	}
	w, err := s.relatedWatch(s.placed(late))
	if err != nil {
		return err
	}
	_, err = s.controller.AddWatch(w)
	return err
}

// effectiveWatch is the manifest's watch of the kind with the flags over it.
func (s *session) effectiveWatch(m *abi.Manifest) abi.Watch {
	var w abi.Watch
	if m.For != nil {
		w = *m.For
	}
	o := s.opts
	if len(o.namespaces) > 0 {
		w.Namespaces = o.namespaces
	}
	if o.allNamespaces {
		w.Namespaces = nil
	}
	if o.selector != "" {
		w.LabelSelector = o.selector
	}
	if o.fieldSelector != "" {
		w.FieldSelector = o.fieldSelector
	}
	if len(o.predicates) > 0 {
		w.Predicates = o.predicates
	}
	return w
}

// ownedNamespaces returns where an owned kind is watched: where its owners are,
// or, if they have no namespace or are in all, where the manifest says.
func (s *session) ownedNamespaces(k kubeapi.Kind, w abi.Watch) []string {
	switch ns := s.kind.watch.Namespaces; {
	case !k.Namespaced:
		return nil
	case len(ns) == 0 && !s.opts.allNamespaces:
		return w.Namespaces
	default:
		return ns
	}
}

func (s *session) sayWaiting(reason error) {
	next := "start the API server, or name another cluster; until then this tries again by itself"
	if errors.Is(reason, kubeapi.ErrUnknownKind) {
		next = "install its CustomResourceDefinition; until then this tries again by itself"
	}
	s.log.Warn("waiting for the cluster", "reason", reason.Error(), "next", next, "controller", s.name)
}

// kindError gives errors of the resolver their exit code.
func kindError(err error) error {
	switch {
	case errors.Is(err, kubeapi.ErrUnknownKind), errors.Is(err, kubeapi.ErrAmbiguousKind):
		return withCode(exitKind, err)
	case errors.Is(err, kubeapi.ErrBadKindName):
		return withCode(exitUsage, err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return withCode(exitDenied, fmt.Errorf("%w; check the credentials of the kubeconfig: kubectl auth whoami", err))
	}
	return err
}

// close stops what was started.
func (s *session) close() error {
	if s.module == nil {
		return nil
	}
	return s.module.Close(context.Background())
}
