// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/stranded"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// The pace of the search for stranded objects.
const (
	strandedRound   = 2 * time.Second // between two looks at objects that have left the watch
	strandedRecheck = time.Minute     // between two looks at stranded objects
	strandedPause   = time.Minute     // between two lists, and after an error
	strandedTimeout = 30 * time.Second
)

// strandedState is the search for objects that have the finalizer of the controller but are outside of the watched set.
type strandedState struct {
	finder stranded.Finder
	scope  stranded.Scope
	left   chan abi.Key // objects that have left the watch
}

// newStranded returns the search, or nil if the controller has no finalizer.
func (c *Controller) newStranded() *strandedState {
	w := c.kind.Watch
	selector, err := labels.Parse(w.LabelSelector)
	if c.finalizer() == "" || err != nil { // the watch reports the error
		return nil
	}
	s := &strandedState{
		finder: stranded.Finder{Client: c.Metadata, Kind: c.kind.Kind, Finalizer: c.finalizer()},
		scope:  stranded.Scope{Namespaces: w.Namespaces, Labels: selector}, left: make(chan abi.Key, stranded.MaxGets),
	}
	if w.FieldSelector != "" {
		s.scope.Selected = func(key abi.Key) bool { return c.member() != nil || c.Runtime.Stored(key) != nil }
	}
	return s
}

// leave records that an object has left the watch. If there are too many, all objects are listed.
func (s *strandedState) leave(key abi.Key) {
	select {
	case s.left <- key:
	default:
	}
}

// findStranded looks for stranded objects until ctx ends.
func (c *Controller) findStranded(ctx context.Context, s *strandedState) {
	var table stranded.Table
	round, recheck := time.NewTicker(strandedRound), time.NewTicker(strandedRecheck)
	defer round.Stop()
	defer recheck.Stop()
	var next time.Time // no list, and no request after an error, before this time
	for {
		select {
		case <-ctx.Done():
			return
		case <-recheck.C:
			table.Recheck()
			continue
		case <-round.C:
		}
		s.drain(&table)
		gets, list := table.Task()
		early := list && time.Now().Before(next) || s.scope.Selected != nil && len(c.Runtime.Unsynced()) > 0
		if early || len(gets) == 0 && !list {
			continue
		}
		err := c.lookForStranded(ctx, s, &table)
		if err != nil && ctx.Err() == nil {
			table.Missed()
			c.log.Debug("cannot look for objects outside of the watched set", "controller", c.name, "error", err)
		}
		if list || err != nil {
			next = time.Now().Add(strandedPause)
		}
	}
}

// drain records the objects that have left the watch.
func (s *strandedState) drain(table *stranded.Table) {
	if len(s.left) == cap(s.left) {
		table.Missed()
	}
	for len(s.left) > 0 {
		table.Left(<-s.left)
	}
}

// lookForStranded performs one round.
func (c *Controller) lookForStranded(ctx context.Context, s *strandedState, table *stranded.Table) error {
	ctx, cancel := context.WithTimeout(ctx, strandedTimeout)
	defer cancel()
	fresh, err := s.finder.Look(ctx, table, &s.scope)
	c.stranded.Store(table.View())
	if len(fresh) > 0 {
		c.log.Warn("objects have the finalizer of the controller but it no longer watches them: their deletion would wait; "+
			"select them again, or take the finalizer off with wasmctl release", "controller", c.name, "object", fresh[0].Key.String(),
			slog.Int("objects", len(fresh)), slog.String("finalizer", s.finder.Finalizer))
	}
	return err
}

// Stranded returns the objects that have the finalizer of the controller but are outside of the watched set, and the finalizer. It may be
// called at any time.
func (c *Controller) Stranded() (view *stranded.View, finalizer string) {
	if view = c.stranded.Load(); view == nil {
		view = &stranded.View{}
	}
	return view, c.finalizer()
}

// ReleaseObjects takes the finalizer off objects, or off all that are outside of the watched set.
func (c *Controller) ReleaseObjects(ctx context.Context, what admin.Release) ([]admin.Released, error) {
	s := c.newStranded()
	switch {
	case s == nil:
		return nil, admin.Invalid(fmt.Errorf("controller[%s]: its module has no finalizer", c.name))
	case what.All == (len(what.Objects) > 0):
		return nil, admin.Invalid(errors.New("want the names of objects, or all"))
	}
	for _, key := range what.Objects {
		if err := c.releasable(key); err != nil {
			return nil, err
		}
	}
	if what.All && s.scope.Limited() {
		found, _, err := s.finder.List(ctx, &s.scope)
		if err != nil {
			return nil, err
		}
		for i := range found {
			what.Objects = append(what.Objects, found[i].Key)
		}
	}
	remove := func(ctx context.Context, object []byte) error {
		return c.api.RemoveFinalizer(ctx, c.kind.Kind, object, s.finder.Finalizer)
	}
	if what.DryRun {
		remove = nil
	}
	released := s.finder.Release(ctx, what.Objects, remove)
	c.log.Info("released objects from the finalizer", "controller", c.name, slog.Int("objects", len(released)), slog.Bool("dry_run", what.DryRun))
	return released, nil
}

// releasable returns an error if an object cannot be released: the controller would add the finalizer again.
func (c *Controller) releasable(key abi.Key) error {
	if err := c.CheckKey(key); err != nil {
		return admin.Invalid(err)
	}
	if o := c.Runtime.Stored(key); o != nil && !o.Deleting() {
		return admin.Refuse(fmt.Errorf("%s[%s]: the controller %s watches it, and would add the finalizer again; delete it first, or stop the controller", c.kind.Name(), key, c.name))
	}
	return nil
}
