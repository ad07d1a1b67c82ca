package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// session is one run of one module: it joins host and runtime. Its steps are
// connect, load, checkAccess, checkSelectors, controller; close undoes what was done.
type session struct {
	opts *runOptions
	log  *slog.Logger
	name string // of the controller

	dev        *devcluster.Cluster // nil unless --dev
	restConfig *rest.Config
	client     *kubeapi.Client
	dynamic    dynamic.Interface // for the watches
	resolver   *kubeapi.Resolver

	module *host.Module
	guests applier.Module // what the controller acquires guests from: module
	watch  abi.Watch      // what the manifest says of the kind, under the flags
	kind   kubeapi.Kind
	owns   []ownedKind
	policy *kubeapi.Policy
}

// ownedKind is an owned kind and what the manifest says of its watch.
type ownedKind struct {
	kubeapi.Kind

	watch abi.Watch
}

// connect finds the cluster; it sends nothing to it yet.
func (s *session) connect(ctx context.Context) error {
	var err error
	if s.opts.dev {
		err = s.startDev(ctx)
	} else {
		s.restConfig, err = loadConfig(s.opts.kubeconfig, s.opts.context)
	}
	if err != nil {
		return withCode(exitCluster, err)
	}
	s.restConfig.QPS = -1 // the API server's priority and fairness decides
	s.restConfig.UserAgent = "wasmctl/" + version
	if s.client, err = kubeapi.NewClient(s.restConfig); err != nil {
		return withCode(exitCluster, err)
	}
	if s.dynamic, err = dynamic.NewForConfig(s.restConfig); err != nil {
		return withCode(exitCluster, err)
	}
	s.resolver = kubeapi.NewResolver(s.client, s.log)
	return nil
}

// load loads the module. Between its manifest being known and the end of
// loading, kinds are resolved, which waits for API server and CRDs.
func (s *session) load(ctx context.Context, wasm []byte) error {
	o := s.opts
	cfg := host.Config{
		Name: o.name, Fallback: moduleName(o.module), Concurrency: o.concurrency, Limits: host.Limits{Memory: o.memoryBytes, Timeout: o.timeout},
		CacheDir: s.cacheDir(), Logger: s.log, Settings: o.config,
	}
	cfg.API = func(m *abi.Manifest) (host.API, error) {
		s.name = cfg.NameFor(m)
		return s.api(ctx, m)
	}
	var err error
	if s.module, err = host.Load(ctx, wasm, cfg); err != nil {
		return moduleError(err)
	}
	s.guests = s.module
	return nil
}

// cacheDir returns where compiled modules are kept, or "".
func (s *session) cacheDir() string {
	switch s.opts.cacheDir {
	case "none":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			s.log.Warn("compiled modules are not kept: name a directory with --cache-dir", "error", err.Error())
			return ""
		}
		return filepath.Join(dir, "wasmctl", "modules")
	}
	return s.opts.cacheDir
}

// api resolves the kinds of manifest and flags and builds the module's view of
// the cluster.
func (s *session) api(ctx context.Context, m *abi.Manifest) (host.API, error) {
	if err := checkManifest(m); err != nil {
		return nil, err
	}
	if err := s.resolveKinds(ctx, m); err != nil {
		return nil, err
	}
	s.policy = kubeapi.NewModulePolicy(s.kind, s.namespaces(), m.Capabilities)
	return kubeapi.New(kubeapi.Config{Client: s.client, Resolver: s.resolver, Controller: s.name, Policy: s.policy, Logger: s.log})
}

// resolveKinds finds the kinds to watch. Flags win over the manifest.
func (s *session) resolveKinds(ctx context.Context, m *abi.Manifest) error {
	var err error
	switch {
	case s.opts.forKind != "":
		s.kind, err = s.resolver.Wait(ctx, s.opts.forKind, s.sayWaiting)
	case m.For != nil:
		s.kind, err = s.resolver.WaitGVK(ctx, schema.GroupVersionKind{Group: m.For.Group, Version: m.For.Version, Kind: m.For.Kind}, s.sayWaiting)
	default:
		return withCode(exitUsage, errors.New("--for is needed: the module's manifest does not say what kind it is for"))
	}
	if err != nil {
		return kindError(err)
	}
	s.watch = s.effectiveWatch(m)
	if len(s.watch.Namespaces) > 0 && !s.kind.Namespaced {
		return withCode(exitUsage, fmt.Errorf("--namespace %s: %s is cluster-scoped; leave the namespace out", s.watch.Namespaces[0], s.kind.Name()))
	}
	return s.resolveOwned(ctx, m)
}

func (s *session) resolveOwned(ctx context.Context, m *abi.Manifest) error {
	if len(s.opts.owns) > 0 {
		for _, name := range s.opts.owns {
			k, err := s.resolver.Wait(ctx, name, s.sayWaiting)
			if err != nil {
				return kindError(err)
			}
			s.owns = append(s.owns, ownedKind{Kind: k})
		}
		return nil
	}
	for _, w := range m.Owns {
		gvk := schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
		k, err := s.resolver.WaitGVK(ctx, gvk, s.sayWaiting)
		if err != nil {
			return kindError(err)
		}
		s.owns = append(s.owns, ownedKind{k, w})
	}
	return nil
}

// effectiveWatch is the manifest's watch of the kind with the flags over it.
func (s *session) effectiveWatch(m *abi.Manifest) abi.Watch {
	var w abi.Watch
	if m.For != nil {
		w = *m.For
	}
	o := s.opts
	if o.namespace != "" {
		w.Namespaces = []string{o.namespace}
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
	return w
}

func (s *session) namespaces() []string { return s.watch.Namespaces }

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

// controller builds the controller and its watches.
func (s *session) controller() (*controller.Controller, error) {
	cfg := controller.Config{
		Name: s.name, Module: s.guests, Logger: s.log, Concurrency: s.module.Concurrency(), DrainTimeout: s.opts.drain,
		Watches: watcher.NewSet(s.dynamic, watcher.Config{Log: s.log}), OnOutcome: s.logOutcome, Deletes: s.watch.Deletes,
		For: kindWatch(s.kind, s.watch),
	}
	for _, k := range s.owns {
		w := k.watch
		w.Namespaces = s.ownedNamespaces(k)
		cfg.Owns = append(cfg.Owns, kindWatch(k.Kind, w))
	}
	return controller.New(cfg)
}

// ownedNamespaces returns where an owned kind is watched: where its owners are,
// or, if they have no namespace or are in all, where the manifest says.
func (s *session) ownedNamespaces(k ownedKind) []string {
	switch ns := s.namespaces(); {
	case !k.Namespaced:
		return nil
	case len(ns) == 0 && !s.opts.allNamespaces:
		return k.watch.Namespaces
	default:
		return ns
	}
}

func kindWatch(k kubeapi.Kind, w abi.Watch) controller.Kind {
	source := watcher.Source{Resource: k.GVR(), LabelSelector: w.LabelSelector, FieldSelector: w.FieldSelector}
	if len(w.Namespaces) > 0 {
		source.Namespace = w.Namespaces[0]
	}
	return controller.Kind{Source: source, GroupKind: k.GVK().GroupKind(), ClusterScoped: !k.Namespaced, Optional: w.Optional}
}

// close stops what was started, in reverse.
func (s *session) close() error {
	var errs []error
	if s.module != nil {
		errs = append(errs, s.module.Close(context.Background()))
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Stop())
	}
	return errors.Join(errs...)
}
