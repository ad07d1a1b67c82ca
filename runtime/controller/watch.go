// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Watch describes a watched kind, and the objects that are affected by its events.
type Watch struct {
	// Kind is the kind in owner references and for guests.
	Kind schema.GroupVersionKind
	// Resource is the listed and watched resource.
	Resource schema.GroupVersionResource
	// ClusterScoped means that objects of the kind have no namespace.
	ClusterScoped bool
	// Namespaces are watched individually; if empty, all namespaces are watched.
	Namespaces []string
	// LabelSelector and FieldSelector use the API server's syntax.
	LabelSelector, FieldSelector string
	// MetadataOnly stores only the objects' metadata.
	MetadataOnly bool
	// Optional lets reconciling start before the watch has synced (rule 10).
	Optional bool
	// Owned means that the module owns objects of the kind, and may prune them.
	Owned bool
	// Map returns the objects that are affected by an event; if nil, the guest's map does. It is ignored in Config.For, whose events affect
	// their own object.
	Map queue.Mapper
	// Hooks, if not nil, replaces Config.Hooks, for a watch that only the next revision of the module has.
	Hooks queue.Module
	// Predicates hide irrelevant events (rule 23): see predicate.Parse.
	Predicates []string
}

// sources returns the sources for a part of the objects: one per namespace.
func (w *Watch) sources(part slots.Range) []watcher.Source {
	namespaces := w.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var sources []watcher.Source
	for _, ns := range namespaces {
		if part.Field == slots.Namespace && ns != "" && !part.Has("", ns) {
			continue // none of its objects is in the slot
		}
		s := watcher.Source{
			Resource: w.Resource, Namespace: ns, LabelSelector: w.LabelSelector, FieldSelector: w.FieldSelector, Shard: part,
		}
		if w.MetadataOnly {
			s.Metadata, s.Kind = true, w.Kind.Kind
		}
		sources = append(sources, s)
	}
	return sources
}

// Handle is a watch of a controller.
type Handle struct {
	watch    Watch
	selector labels.Selector                         // of watch.LabelSelector
	subs     atomic.Pointer[[]*watcher.Subscription] // replaced, never modified
	hook     *queue.Hook                             // nil if the guest is not called
	own      *own                                    // nil unless the watch is that of Config.For

	stop  chan struct{} // closed by RemoveWatch
	ended sync.WaitGroup

	sharded bool // the watch can be split by slots: see Config.Slots
	mu      sync.Mutex
	parts   map[int]*slotWatch // guarded by mu; the parts of a sharded watch, by slot or everything
}

// all returns the subscriptions of the watch; if it is sharded, those of the current slots.
func (h *Handle) all() []*watcher.Subscription { return *h.subs.Load() }

// newHandle takes the references to a watch.
func (c *Controller) newHandle(w Watch, isFor bool) (*Handle, error) {
	selector, err := labels.Parse(w.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("watch[%s]: label selector %q: %w", w.Kind.Kind, w.LabelSelector, err)
	}
	h := &Handle{watch: w, selector: selector, stop: make(chan struct{}), parts: map[int]*slotWatch{}}
	h.sharded = c.slots != nil && (isFor || w.Owned && !w.ClusterScoped && !c.cfg.For.ClusterScoped)
	h.subs.Store(&[]*watcher.Subscription{})
	sources := w.sources(slots.Range{})
	filters, err := c.filters(&w, len(sources))
	if err != nil {
		return nil, err
	}
	hooks := w.Hooks
	if hooks == nil {
		hooks = c.cfg.Hooks
	}
	if w.Map == nil || filters[0].Asks() {
		h.hook, err = queue.NewHook(queue.HookConfig{
			Module: hooks, Controller: c.cfg.Controller, Group: w.Kind.Group, Version: w.Kind.Version, Kind: w.Kind.Kind,
			Mapper: w.Map, Resource: w.Resource.GroupResource().String(), ClusterScoped: c.cfg.For.ClusterScoped, Emit: c.request,
		})
		if err != nil {
			return nil, err
		}
	}
	if h.sharded {
		return h, nil // it is watched once this replica has a slot
	}
	subs := make([]*watcher.Subscription, len(sources))
	for i, source := range sources {
		subs[i] = c.cfg.Watches.Acquire(source, c.handler(h, filters[i]))
		subs[i].Decoded = &c.decoded
	}
	h.subs.Store(&subs)
	return h, nil
}

// filters compiles the predicates of a watch, once per subscription, because a Filter belongs to one goroutine.
func (c *Controller) filters(w *Watch, n int) ([]*predicate.Filter, error) {
	filters := make([]*predicate.Filter, n)
	for i := range filters {
		var err error
		opts := predicate.Options{Always: []string{applier.PausedAnnotation}}
		if w.Resource == c.cfg.For.Resource {
			opts.OnHidden = c.cfg.OnHidden
		}
		filters[i], err = predicate.Parse(w.Predicates, opts)
		if err != nil {
			return nil, fmt.Errorf("watch[%s]: predicates: %w", w.Kind.Kind, err)
		}
	}
	return filters, nil
}

// handler returns the event handler of one subscription. It may wait for the runner's loop, which never waits for a guest (rule 16).
func (c *Controller) handler(h *Handle, filter *predicate.Filter) watcher.Handler {
	var mapped []queue.Request // reused: a subscription calls its handler one at a time
	return func(ctx context.Context, ev reflector.Event) {
		if ev.Type == reflector.Deleted && h.own != nil && c.cfg.OnLeft != nil && ev.Old.HasFinalizer(c.cfg.Finalizer) {
			c.cfg.OnLeft(ev.Ref())
		}
		verdict := filter.Check(time.Now(), ev)
		if h.own != nil && h.own.waiting.Load() > 0 && h.own.take(ev, func() { c.pass(ctx, h, ev, verdict, nil) }) {
			return
		}
		mapped = c.pass(ctx, h, ev, verdict, mapped[:0])
	}
}

// pass passes an event to the queue. It appends the resulting requests to mapped, and returns that.
func (c *Controller) pass(ctx context.Context, h *Handle, ev reflector.Event, verdict predicate.Verdict, mapped []queue.Request) []queue.Request {
	switch {
	case verdict == predicate.Hide:
	case h.hook != nil:
		c.reportRelated(h, ev)
		h.hook.Handle(ev, verdict == predicate.Ask)
	default:
		if mapped = h.watch.Map(mapped, ev); len(mapped) > 0 {
			c.reportRelated(h, ev)
			c.request(ctx, mapped)
		}
	}
	return mapped
}

// reportRelated reports a change of a related object. Listed objects are not changes.
func (c *Controller) reportRelated(h *Handle, ev reflector.Event) {
	if c.cfg.OnRelated != nil && ev.Type != reflector.Listed && h.watch.Resource != c.cfg.For.Resource {
		c.cfg.OnRelated(h.watch.Resource.GroupResource().String(), ev)
	}
}

// run passes events on until ctx ends or the watch is removed. The guest is called after listed returns true: its map and filter may read
// the cache, and the controller may watch other kinds that have not listed yet.
func (h *Handle) run(ctx context.Context, listed func(context.Context) bool) {
	ctx, cancel := context.WithCancel(ctx)
	h.ended.Go(func() {
		select {
		case <-h.stop:
		case <-ctx.Done():
		}
		cancel()
	})
	for _, s := range h.all() {
		h.ended.Go(func() { _ = s.Run(ctx) }) // it fails only if it was called before
	}
	if h.hook != nil {
		h.ended.Go(func() {
			if listed(ctx) {
				_ = h.hook.Run(ctx)
			}
		})
	}
}

// release releases the references of a watch that was not run.
func (h *Handle) release() {
	for _, s := range h.all() {
		s.Release()
	}
}

// Wait returns when the watch has synced and the runner has received its first events (rule 10). If ctx ends first, the error has the state of
// the watch and wraps the cause of ctx.
func (h *Handle) Wait(ctx context.Context) error {
	if err := h.waitForLists(ctx); err != nil || h.hook == nil {
		return err
	}
	return h.wait(ctx, h.hook.Mapped())
}

// waitForLists returns when the watch has synced. Its error is that of Wait.
func (h *Handle) waitForLists(ctx context.Context) error {
	for _, s := range h.all() {
		if err := h.wait(ctx, s.Synced()); err != nil {
			return fmt.Errorf("watch[%s]: %w: %s", s.Source(), err, s.State())
		}
	}
	return nil
}

// wait returns when done is closed, or the watch is removed, or ctx ends.
func (h *Handle) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
	case <-h.stop:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
