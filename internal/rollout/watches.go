// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// watches are the watches of a controller, except that of the reconciled kind. They belong
// to the loop.
type watches struct {
	controller *controller.Controller
	active     map[string]*controller.Handle // the watches that the live revision needs, by wanted.id
	// leaving are the watches that only earlier revisions needed. They end when no rollback
	// can need them.
	leaving map[string]*controller.Handle
	pending map[string]context.CancelFunc // ends the wait for an optional kind, by Watched.ID
	waiting sync.WaitGroup                // of pending
}

func (w *watches) init(c *controller.Controller) {
	w.controller, w.active, w.leaving, w.pending = c, map[string]*controller.Handle{}, map[string]*controller.Handle{}, map[string]context.CancelFunc{}
}

// add adds the missing watches. After an error no watch was added.
func (w *watches) add(list []wanted, hooks queue.Module) (added map[string]*controller.Handle, err error) {
	added = map[string]*controller.Handle{}
	for _, want := range list {
		if w.active[want.id] != nil || w.leaving[want.id] != nil || added[want.id] != nil {
			continue
		}
		if hooks != nil {
			want.watch.Hooks = hooks
		}
		if added[want.id], err = w.controller.AddWatch(want.watch); err != nil {
			delete(added, want.id)
			w.remove(added)
			return nil, err
		}
	}
	return added, nil
}

// prepare adds the missing watches of a candidate, and waits until they have synced. It
// does not touch the others. After an error no watch was added.
func (w *watches) prepare(ctx context.Context, list []wanted, hooks queue.Module) (map[string]*controller.Handle, error) {
	added, err := w.add(list, hooks)
	for _, h := range added {
		if err := h.Wait(ctx); err != nil {
			w.remove(added)
			return nil, err
		}
	}
	return added, err
}

// adopt makes the watches of a promoted revision the active ones. Active watches that it
// does not need become leaving.
func (w *watches) adopt(list []wanted, added map[string]*controller.Handle) {
	before := w.active
	w.active = map[string]*controller.Handle{}
	for _, want := range list {
		for _, from := range []map[string]*controller.Handle{before, w.leaving, added} {
			if h := from[want.id]; h != nil {
				w.active[want.id] = h
				delete(from, want.id)
			}
		}
	}
	maps.Copy(w.leaving, before)
}

// settle ends the leaving watches that the canary does not need, and returns their number.
func (w *watches) settle(k *canaryRun) int {
	n := 0
	for id, h := range w.leaving {
		if !k.needs(id) {
			w.controller.RemoveWatch(h)
			delete(w.leaving, id)
			n++
		}
	}
	return n
}

// goesOn reports whether a kind that only earlier revisions needed is still watched.
func (w *watches) goesOn(k plan.Watched) bool {
	id := k.ID()
	for known := range w.leaving {
		if strings.HasPrefix(known, id) { // the rest of the id tells whether the watch has only metadata
			return true
		}
	}
	return false
}

// remove ends watches.
func (w *watches) remove(handles map[string]*controller.Handle) {
	for _, h := range handles {
		w.controller.RemoveWatch(h)
	}
}

// AwaitPending waits in the background for the optional kinds of the plan that the API
// server does not have, and no longer for others.
func (r *Rollout) AwaitPending(ctx context.Context) {
	w := &r.watches
	needed := map[string]bool{}
	for _, k := range r.plan.Pending {
		id := k.ID()
		needed[id] = true
		if w.pending[id] != nil {
			continue
		}
		waiting, cancel := context.WithCancel(ctx)
		w.pending[id] = cancel
		w.waiting.Go(func() { r.watchPending(waiting, k) })
	}
	for id, cancel := range w.pending {
		if !needed[id] {
			cancel()
			delete(w.pending, id)
		}
	}
}

// watchPending waits until the API server has an optional kind, and passes it to Late.
func (r *Rollout) watchPending(ctx context.Context, k plan.Watched) {
	kind := plan.GVK(&k.Watch).GroupKind().String()
	r.log.Info("optional kind does not exist yet; watching it once its CustomResourceDefinition is installed", "kind", kind)
	id := k.ID()
	var err error
	if k.Kind, err = r.cfg.Resolver.WaitGVK(ctx, plan.GVK(&k.Watch), func(error) {}); err == nil {
		select {
		case r.late <- Late{ctx, id, k}:
		case <-ctx.Done():
		}
		return
	}
	if ctx.Err() == nil {
		r.log.Error("cannot watch optional kind", "kind", kind, "error", err.Error())
	}
}

// Late is an optional kind that has become available in the API server.
type Late struct {
	ctx  context.Context // ends when the kind is no longer needed
	id   string
	kind plan.Watched
}

// Late returns the channel of optional kinds, which the caller must pass to Watch.
func (r *Rollout) Late() <-chan Late { return r.late }

// Watch adds the watch of an optional kind, unless it is no longer needed.
func (r *Rollout) Watch(l Late) {
	if l.ctx.Err() != nil {
		return
	}
	if err := r.addPending(l.ctx, l.id, l.kind); err != nil && l.ctx.Err() == nil {
		r.log.Error("cannot watch optional kind", "kind", plan.GVK(&l.kind.Watch).GroupKind().String(), "error", err.Error())
	}
}

func (r *Rollout) addPending(ctx context.Context, id string, k plan.Watched) error {
	k, err := r.allowed(ctx, r.cfg.Planner.Placed(r.cfg.Kind, k))
	if err != nil {
		return err
	}
	want, err := r.want(k, r.cfg.Module)
	if err != nil {
		return err
	}
	added, err := r.watches.add([]wanted{want}, nil)
	maps.Copy(r.watches.active, added)
	delete(r.watches.pending, id)
	return err
}

// allowed narrows a watch of the live module to the objects that the module may watch.
func (r *Rollout) allowed(ctx context.Context, k plan.Watched) (plan.Watched, error) {
	planner, err := r.cfg.Planner.Of(r.cfg.Module.Digest())
	if err == nil {
		k, err = planner.Narrow(ctx, k)
	}
	if err != nil || r.Options.AllowMoreRights {
		return k, err
	}
	limit, err := planner.Limit(ctx, r.cfg.Kind, r.cfg.Plan)
	if err != nil {
		return k, err
	}
	return k, limit.AllowsWatch(k)
}
