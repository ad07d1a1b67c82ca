package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// watches are those of a controller beside that of the kind it reconciles. They
// belong to session.serve.
type watches struct {
	controller *controller.Controller
	active     map[string]*controller.Handle // what the live generation needs, by wanted.id
	// leaving are those that only generations before needed. They go when there is
	// no way back any more.
	leaving map[string]*controller.Handle
	held    map[string]bool               // what a canary needs: it does not go either; by wanted.id
	late    map[string]context.CancelFunc // ends the wait for an optional kind, by watched.id
	waiting sync.WaitGroup                // of late
}

// wanted is a watch that a generation needs.
type wanted struct {
	id    string
	watch controller.Watch
}

// wants returns the watches of a plan, for a module or candidate.
func (s *session) wants(p *plan, c code) ([]wanted, error) {
	out := make([]wanted, len(p.related))
	for i, k := range p.related {
		w, err := s.relatedWatch(k, c)
		if err != nil {
			return nil, err
		}
		out[i] = wanted{fmt.Sprint(k.id(), w.MetadataOnly), w}
	}
	return out, nil
}

// startWatches adds the first generation's watches to a controller that does
// not run yet.
func (s *session) startWatches(c *controller.Controller) (*watches, error) {
	w := &watches{
		controller: c, active: map[string]*controller.Handle{}, leaving: map[string]*controller.Handle{}, late: map[string]context.CancelFunc{},
	}
	list, err := s.wants(s.plan, s.module)
	if err != nil {
		return nil, err
	}
	for _, want := range list {
		if w.active[want.id] != nil {
			continue // named twice
		}
		if w.active[want.id], err = c.AddWatch(want.watch); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// prepare adds what a candidate needs and nobody has, and waits until it has
// synced. The others are not touched. After an error nothing was added.
func (w *watches) prepare(ctx context.Context, list []wanted, hooks queue.Module) (added map[string]*controller.Handle, err error) {
	added = map[string]*controller.Handle{}
	defer func() {
		if err != nil {
			w.remove(added)
		}
	}()
	for _, want := range list {
		if w.active[want.id] != nil || w.leaving[want.id] != nil || added[want.id] != nil {
			continue
		}
		want.watch.Hooks = hooks
		h, err := w.controller.AddWatch(want.watch)
		if err != nil {
			return added, err
		}
		added[want.id] = h
	}
	for id, h := range added {
		if err := h.Wait(ctx); err != nil {
			return added, fmt.Errorf("watch %s has not synced: %w", id, context.Cause(ctx))
		}
	}
	return added, nil
}

// adopt makes the watches of a generation that was promoted the active ones.
// Those that it does not need are leaving.
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

// settle ends the watches that are leaving and that no canary needs, and returns
// how many.
func (w *watches) settle() int {
	n := 0
	for id, h := range w.leaving {
		if !w.held[id] {
			w.controller.RemoveWatch(h)
			delete(w.leaving, id)
			n++
		}
	}
	return n
}

// goesOn reports whether a kind that only generations before needed is watched
// still.
func (w *watches) goesOn(k watched) bool {
	id := k.id()
	for known := range w.leaving {
		if strings.HasPrefix(known, id) { // then follows whether it has metadata only
			return true
		}
	}
	return false
}

// hold keeps what a canary needs from ending; nil where there is none any more.
func (w *watches) hold(list []wanted) {
	w.held = map[string]bool{}
	for _, want := range list {
		w.held[want.id] = true
	}
}

func (w *watches) remove(handles map[string]*controller.Handle) {
	for _, h := range handles {
		w.controller.RemoveWatch(h)
	}
}

// awaitLate waits for the optional kinds of the plan that the API server does
// not have, and for no others.
func (s *session) awaitLate(ctx context.Context) {
	w := s.watching
	needed := map[string]bool{}
	for _, late := range s.plan.late {
		id := late.id()
		needed[id] = true
		if w.late[id] != nil {
			continue
		}
		waiting, cancel := context.WithCancel(ctx)
		w.late[id] = cancel
		w.waiting.Go(func() { s.watchLate(waiting, late) })
	}
	for id, cancel := range w.late {
		if !needed[id] {
			cancel()
			delete(w.late, id)
		}
	}
}

// watchLate watches an optional kind as soon as the API server has it.
func (s *session) watchLate(ctx context.Context, late watched) {
	kind := gvk(&late.watch).GroupKind().String()
	s.log.Info("optional kind is not there yet: it will be watched when its CustomResourceDefinition is installed", "kind", kind, "controller", s.name)
	id := late.id()
	var err error
	if late.Kind, err = s.resolver.WaitGVK(ctx, gvk(&late.watch), func(error) {}); err == nil {
		err = s.do(ctx, func(context.Context) error { return s.addLate(ctx, id, late) })
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("optional kind cannot be watched", "kind", kind, "error", err.Error(), "controller", s.name)
	}
}

// addLate adds the watch of an optional kind, unless it is not needed any more.
func (s *session) addLate(ctx context.Context, id string, late watched) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	late = s.opts.placed(s.kind, late)
	g, err := s.granted(ctx)
	if err == nil {
		late, err = g.narrow(late)
	}
	if err != nil {
		return err
	}
	w, err := s.relatedWatch(late, s.module)
	if err != nil {
		return err
	}
	want := wanted{fmt.Sprint(late.id(), w.MetadataOnly), w}
	if s.watching.active[want.id] == nil {
		s.watching.active[want.id], err = s.controller.AddWatch(w)
	}
	delete(s.watching.late, id)
	return err
}

// candidateHooks asks a candidate until it is replaced, and then whatever is
// live: a watch that came with a generation may stay for later ones.
type candidateHooks struct {
	candidate *host.Candidate
	module    *host.Module
}

// Map implements queue.Module.
func (h candidateHooks) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	keys, err := h.candidate.Map(ctx, ev)
	if errors.Is(err, host.ErrClosed) {
		return h.module.Map(ctx, ev)
	}
	return keys, err
}

// Filter implements queue.Module.
func (h candidateHooks) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	keep, err := h.candidate.Filter(ctx, ev)
	if errors.Is(err, host.ErrClosed) {
		return h.module.Filter(ctx, ev)
	}
	return keep, err
}
