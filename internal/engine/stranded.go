// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/stranded"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// The pace of the search for stranded objects.
const (
	strandedRound   = 2 * time.Second  // before each round, which looks at objects
	strandedRecheck = time.Minute      // between two looks at stranded objects
	strandedPause   = time.Minute      // after an error
	strandedList    = 10 * time.Minute // between two lists
	strandedTimeout = 5 * time.Minute  // of a round, which may list many objects
)

// strandedState is the search for objects that have the finalizer of the controller but are outside of the watched set.
type strandedState struct {
	finder stranded.Finder
	scope  stranded.Scope

	wake chan struct{} // has one element if there may be something in left
	mu   sync.Mutex
	left []abi.Key // guarded by mu; objects that have left the watch
	lost bool      // guarded by mu; there were more

	view atomic.Pointer[stranded.View] // the last result; nil before the first one

	table          stranded.Table // owned by findStranded
	next, nextList time.Time      // no request and no list before these times; owned by findStranded
}

// newStranded returns the search, or nil if the controller has no finalizer.
func (c *Controller) newStranded() *strandedState {
	w := c.kind.Watch
	selector, err := labels.Parse(w.LabelSelector)
	if c.finalizer() == "" || err != nil { // the watch reports the error
		return nil
	}
	s := &strandedState{
		finder: stranded.Finder{Client: c.Metadata, API: c.api, Kind: c.kind.Kind, Finalizer: c.finalizer()},
		scope:  stranded.Scope{Namespaces: w.Namespaces, Labels: selector}, wake: make(chan struct{}, 1),
	}
	if w.FieldSelector != "" {
		s.scope.Selected = func(key abi.Key) bool { return c.member() != nil || c.Runtime.Stored(key) != nil }
	}
	return s
}

// searchStranded sets the search of a controller whose watch can leave objects out.
func (c *Controller) searchStranded(cfg *controller.Config) {
	if s := c.newStranded(); s != nil && s.scope.Limited() {
		c.search, cfg.OnLeft = s, s.leave
	}
}

// leave records that an object has left the watch. If there are too many, all objects are listed.
func (s *strandedState) leave(key abi.Key) {
	s.mu.Lock()
	if len(s.left) < stranded.MaxObjects {
		s.left = append(s.left, key)
	} else {
		s.lost = true
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drain adds the objects that have left the watch to the table.
func (s *strandedState) drain() {
	s.mu.Lock()
	left, lost := s.left, s.lost
	s.left, s.lost = nil, false
	s.mu.Unlock()
	for _, key := range left {
		s.table.Left(key)
	}
	if lost {
		s.table.Missed()
	}
}

// findStranded looks for stranded objects until ctx ends. It sleeps while there is nothing to look at.
func (c *Controller) findStranded(ctx context.Context, s *strandedState) {
	recheck := time.NewTicker(strandedRecheck)
	defer recheck.Stop()
	round := time.After(strandedRound) // nil if no round is needed
	for {
		select {
		case <-ctx.Done():
			return
		case <-recheck.C:
			s.table.Recheck()
		case <-s.wake:
			s.drain()
		case <-round:
			round = nil
			c.searchRound(ctx, s)
		}
		if round == nil && s.table.Needed() {
			round = time.After(strandedRound)
		}
	}
}

// searchRound carries out a Task of the table, unless it is too early.
func (c *Controller) searchRound(ctx context.Context, s *strandedState) {
	gets, list := s.table.Task()
	now := time.Now()
	list = list && !now.Before(s.nextList) // until then, some objects are looked at
	if len(gets) == 0 && !list || now.Before(s.next) || s.scope.Selected != nil && len(c.Runtime.Unsynced()) > 0 {
		return
	}
	switch err := c.lookForStranded(ctx, s, gets, list); {
	case err != nil && ctx.Err() == nil:
		c.log.Debug("cannot look for objects outside of the watched set", "controller", c.name, "error", err)
		s.next = now.Add(strandedPause)
	case list:
		s.nextList = now.Add(strandedList)
	}
}

// lookForStranded performs one round, and logs the first object that it finds stranded.
func (c *Controller) lookForStranded(ctx context.Context, s *strandedState, gets []abi.Key, list bool) error {
	ctx, cancel := context.WithTimeout(ctx, strandedTimeout)
	defer cancel()
	err := s.finder.Look(ctx, &s.table, &s.scope, gets, list)
	view, now := s.table.View(), time.Now()
	known := map[string]bool{}
	if old := s.view.Swap(view); old != nil {
		for _, o := range old.Stranded(now) {
			known[o.UID] = true
		}
	}
	fresh := slices.DeleteFunc(view.Stranded(now), func(o stranded.Object) bool { return known[o.UID] })
	if len(fresh) > 0 {
		c.log.Warn("an object has the finalizer of the controller, but the controller does not watch it: its deletion waits, or will wait; "+
			"select it again, or take the finalizer off with wasmctl release", "controller", c.name, "object", fresh[0].Key.String(),
			slog.Int("objects", len(fresh)), slog.String("finalizer", s.finder.Finalizer))
	}
	return err
}

// Stranded returns the known objects that have the finalizer but are outside of the watched set, and the finalizer. It may be called at any
// time.
func (c *Controller) Stranded() (view *stranded.View, finalizer string) {
	if s := c.search; s != nil {
		view = s.view.Load()
	}
	return cmp.Or(view, &stranded.View{}), c.finalizer()
}

// ReleaseObjects takes the finalizer off objects, or off all stranded ones.
func (c *Controller) ReleaseObjects(ctx context.Context, what admin.Release) ([]admin.Released, error) {
	s := c.newStranded()
	switch {
	case s == nil:
		return nil, failure.Usage.Wrap(fmt.Errorf("controller[%s]: its module has no finalizer", c.name))
	case what.All == (len(what.Objects) > 0):
		return nil, failure.Usage.Wrap(errors.New("want the names of objects, or all"))
	}
	for _, key := range what.Objects {
		if err := c.releasable(ctx, s, key); err != nil {
			return nil, err
		}
	}
	if what.All {
		view, _ := c.Stranded()
		for _, o := range view.Stranded(time.Now()) {
			what.Objects = append(what.Objects, o.Key)
		}
	}
	released := s.finder.Release(ctx, what.Objects, what.DryRun)
	c.log.Info("released objects from the finalizer", "controller", c.name, slog.Int("objects", len(released)), slog.Bool("dry_run", what.DryRun))
	return released, nil
}

// releasable returns an error if an object cannot be released: the controller, here or in another replica, would add the finalizer again.
func (c *Controller) releasable(ctx context.Context, s *strandedState, key abi.Key) error {
	if err := c.CheckKey(key); err != nil {
		return err
	}
	o, err := s.finder.Named(ctx, key)
	switch {
	case err != nil:
		return err
	case o.DeletionTimestamp == nil && s.scope.Has(o):
		return fmt.Errorf("%s[%s]: the controller %s watches it, and would add the finalizer again; delete it first, or stop the controller", c.kind.Name(), key, c.name)
	}
	return nil
}
