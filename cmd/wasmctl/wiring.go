package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// newController builds the controller and takes its watches.
func (s *session) newController() (*controller.Controller, error) {
	o := s.opts
	triggers, err := o.triggers(s.kind.Kind, s.process.opts.streams.in, s.log)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	man := s.module.Manifest()
	cfg := controller.Config{
		Name: s.name, Module: s.guests, Hooks: s.module, Cluster: cluster{s.api, s.kind.Kind, s.runs}, Finalizer: man.Finalizer, Deletes: s.kind.watch.Deletes,
		Watches: s.watches, Cache: s.cache, Triggers: triggers, Pool: s.pool, Logger: s.log,
		Concurrency: s.module.Concurrency(), DrainTimeout: o.drain, Debounce: scheduler.Debounce{Quiet: o.debounce, Max: o.debounceMax},
		OnOutcome: s.ended, OnHidden: s.hidden, OnRelated: s.relatedChanged, Generation: s.runs.generationOf,
	}
	s.measureRuns(&cfg)
	if s.elector != nil {
		cfg.Active = s.elector.Gate().Open()
	}
	if err := checkPredicates(s.watchedKinds(s.plan), s.module); err != nil {
		return nil, withCode(exitModule, err)
	}
	cfg.For = s.watchOf(s.kind, s.module)
	c, err := controller.New(cfg)
	if err != nil {
		return nil, withCode(exitModule, err)
	}
	if s.watching, err = s.startWatches(c); err != nil {
		c.Release()
		return nil, withCode(exitModule, err)
	}
	return c, nil
}

// code is what is asked of a module or a candidate about its binary.
type code interface {
	Info() *host.Info
	HasHook(name string) bool
}

// checkPredicates refuses predicates that cannot be read, and the guest's
// filter where there is none.
func checkPredicates(kinds []watched, c code) error {
	for _, k := range kinds {
		filter, err := predicate.Parse(k.watch.Predicates, predicate.Options{})
		if err != nil {
			return fmt.Errorf("watch[%s]: predicates: %w", k.Name(), err)
		}
		if filter.Asks() && !c.HasHook(abi.ExportFilter) {
			return fmt.Errorf("watch[%s]: predicates: func asks the module's filter, and the module does not export one", k.Name())
		}
	}
	return nil
}

// relatedWatch says how an owned or watched kind is watched.
func (s *session) relatedWatch(k watched, c code) (controller.Watch, error) {
	w := s.watchOf(k, c)
	var err error
	w.Map, err = s.mapper(k)
	return w, err
}

// watchOf says how a kind is watched.
func (s *session) watchOf(k watched, c code) controller.Watch {
	return controller.Watch{
		Kind: k.GVK(), Resource: k.GVR(), ClusterScoped: !k.Namespaced, Namespaces: k.watch.Namespaces,
		LabelSelector: k.watch.LabelSelector, FieldSelector: k.watch.FieldSelector,
		MetadataOnly: k.watch.MetadataOnly || k.owned && !readsCache(c),
		Optional:     k.watch.Optional, Owned: k.owned, Predicates: k.watch.Predicates,
	}
}

// readsCache reports whether the module can read the cache, or is shown objects
// of other kinds: else nobody needs more of an owned object than its metadata.
func readsCache(c code) bool {
	info := c.Info()
	return info.CanCall(abi.OpCacheGet) || info.CanCall(abi.OpCacheList) || c.HasHook(abi.ExportFilter) || c.HasHook(abi.ExportMap)
}

// mapper returns whom the events of a watch concern; nil asks the guest.
func (s *session) mapper(k watched) (queue.Mapper, error) {
	return queue.ParseMap(k.watch.Map, queue.Relation{
		Group: s.kind.Group, Kind: s.kind.Kind.Kind, ClusterScoped: !s.kind.Namespaced,
		Resource: k.GVR().GroupResource().String(), WatchedClusterScoped: !k.Namespaced, ControllerOnly: k.watch.ControllerOnly,
		OnInvalid: func(object reflector.ObjectRef, key, value string, err error) {
			s.log.Warn("a watched object names no object that could be reconciled", "watch", k.Name(), "object", object.String(),
				"key", key, "value", value, "error", err.Error(), "controller", s.name)
		},
	})
}

// cluster carries out what runs of a kind ask for. It implements
// applier.Cluster.
type cluster struct {
	api  *kubeapi.API
	kind kubeapi.Kind
	runs *runs // under whose policy a run declares
}

// Declare implements applier.Cluster.
func (c cluster) Declare(ctx context.Context, object []byte, d *abi.Declared) error {
	return c.runs.apiOf(ctx, c.api).Declare(ctx, kubeapi.Owner{Kind: c.kind, Object: object}, d)
}

// AddFinalizer implements applier.Cluster.
func (c cluster) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	return c.api.AddFinalizer(ctx, c.kind, object, finalizer)
}

// RemoveFinalizer implements applier.Cluster.
func (c cluster) RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error {
	return c.api.RemoveFinalizer(ctx, c.kind, object, finalizer)
}

// Inspect implements applier.Cluster.
func (c cluster) Inspect(ctx context.Context, w abi.Write) ([]byte, error) {
	if w.Resource == "" {
		return nil, fmt.Errorf("write of %s: its resource is not known", w.Key)
	}
	return c.api.Inspect(ctx, schema.GroupVersionResource{Group: w.Group, Version: w.Version, Resource: w.Resource}, w.Key)
}
