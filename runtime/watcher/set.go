// SPDX-License-Identifier: Apache-2.0

// Package watcher turns LIST and WATCH into events that recover from failures: a watch resumes where it was, lists again when it must, and then
// passes on only the changes. It uses client-go's reflector, which streams lists if the API server can, follows bookmarks and answers 410 with
// a new list.
//
// Watches are shared: a Set has one per Source, however many subscribers there are, with one store. Watches with different selectors, also those
// of other Sets of a Tenant, share the copies of objects. Each subscription has its own inbox, so that a slow one does not block others (rule 16).
//
//	client, err := watcher.NewClient(restConfig)
//	set := watcher.NewSet(client, watcher.Config{Log: log})
//	sub := set.Acquire(watcher.Source{Resource: configMaps}, handler)
//	go sub.Run(ctx)      // events go to handler until ctx ends
//	<-sub.Synced()       // all existing objects have been handled
//	sub.Store().Get(ref) // the last seen state of each object
package watcher

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Handler receives the events of a subscription: first Listed for each existing object, then the changes, in order, one call at a time
// (rule 12).
//
// It runs on the goroutine of Subscription.Run and may block: only its own subscription waits (rule 16). Meanwhile events accumulate, and
// consecutive events of one object are merged, with the oldest Old and the newest New. An intermediate state is skipped only if its labels,
// annotations and owner references equal those of the state before or after it, so that a mapper that uses only these requests the same; or
// if eight states of the object are waiting already. Creations and deletions are never skipped. A Handler must return soon after ctx ends.
type Handler func(ctx context.Context, ev reflector.Event)

// Config configures a Set. The zero value works and reports nothing.
type Config struct {
	// Log logs phase changes of watches: at Info when a watch is ready, at Warn when it is denied, absent, failing
	// or refused.
	Log *slog.Logger
	// OnChange is called after each phase change of a watch, in order. It must not block or call the Set.
	OnChange func(Source, State)
	// Compress compresses objects that are not being read, except Secrets.
	Compress bool
	// Tenant is what the watches share with those of the other Sets of a tenant. If nil, the Set has one without bounds.
	Tenant *Tenant
	// Backoff is the delay between failed requests; see Backoff.Check.
	Backoff Backoff
}

// Set shares watches between subscriptions. It is safe for concurrent use.
type Set struct {
	client *Client
	cfg    Config

	epoch atomic.Uint64 // see Subscription.Epoch

	mu      sync.Mutex
	watches map[Source]*sharedWatch // guarded by mu; those with a reference
	retry   chan struct{}           // guarded by mu; closed and replaced by Retry
}

// NewSet returns a Set without watches.
func NewSet(client *Client, cfg Config) *Set {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Tenant == nil {
		cfg.Tenant = NewTenant(0, 0, nil)
	}
	return &Set{client: client, cfg: cfg, watches: map[Source]*sharedWatch{}, retry: make(chan struct{})}
}

// Acquire takes a reference to the watch of source, for one subscription. The watch starts when the first of its subscriptions is run, and
// stops when the last reference is released (rule 15): at the end of Run, or by Release.
func (s *Set) Acquire(source Source, handler Handler) *Subscription {
	source = source.normal()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[source]
	if w == nil {
		w = newSharedWatch(source, s)
		s.watches[source] = w
	}
	w.refs++
	return &Subscription{set: s, watch: w, handler: handler, inbox: newInbox()}
}

// States returns the state of each watch that has a reference.
func (s *Set) States() map[Source]State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make(map[Source]State, len(s.watches))
	for source, w := range s.watches {
		states[source] = w.status.get()
	}
	return states
}

// ListAgain makes the watches list their objects again whose source matches: the API server then checks the right to list.
func (s *Set) ListAgain(matches func(Source) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for source, w := range s.watches {
		if matches(source) {
			w.listAgain()
		}
	}
}

// Retry makes the watches that wait after a failed request send the next one within a second, because the API server is known to answer
// again.
func (s *Set) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.retry)
	s.retry = make(chan struct{})
}

// retries returns a channel that is closed by the next Retry.
func (s *Set) retries() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retry
}

// start starts the watch unless it is running. The watch outlives ctx, because other subscriptions may share it, but uses its values.
func (s *Set) start(ctx context.Context, w *sharedWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.cancel != nil {
		return
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.status.begin()
	go w.run(ctx)
}

// release releases one reference and, if it was the last, returns when all goroutines of the watch have ended.
func (s *Set) release(w *sharedWatch) {
	s.mu.Lock()
	w.refs--
	last, cancel := w.refs == 0, w.cancel
	if last {
		delete(s.watches, w.source)
	}
	s.mu.Unlock()
	if last && cancel != nil {
		cancel()
		<-w.exited
	}
}

// Subscription is one user's share of a watch.
type Subscription struct {
	// Decoded, if not nil, counts the bytes decoded for the subscription. It must be set before Run.
	Decoded *Decoded

	set     *Set
	watch   *sharedWatch
	handler Handler
	inbox   *inbox
	started atomic.Bool // set by the first call of Run or Release
}

// Run passes events to the handler until ctx ends, and then releases the reference. After Run has returned, the handler is not called again
// and, if this was the last reference, no goroutine of the watch is running. A subscription can be run once; a second call is the only
// error.
func (s *Subscription) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return fmt.Errorf("subscription[%s]: already run or released: acquire another one", s.watch.source)
	}
	defer s.set.release(s.watch)
	s.set.start(ctx, s.watch)
	m := &subscriber{inbox: s.inbox, decoded: s.Decoded}
	select {
	case s.watch.join <- m:
	case <-ctx.Done():
		return nil
	}
	s.inbox.deliver(ctx, s.handler)
	s.watch.leave <- m // the loop is running, because this subscription holds a reference
	return nil
}

// Release releases the reference of a subscription that will not be run. During and after Run it does nothing.
func (s *Subscription) Release() {
	if s.started.CompareAndSwap(false, true) {
		s.set.release(s.watch)
	}
}

// Synced returns a channel that is closed when the handler has returned for all initially existing objects (rule 10).
func (s *Subscription) Synced() <-chan struct{} { return s.inbox.synced }

// Waiting returns the number of events that the handler has not handled yet: how far this subscription lags behind its store.
func (s *Subscription) Waiting() int { return int(s.inbox.waiting.Load()) }

// Store returns the store of the watch. It can be read at any time; it is empty before the first list, and remains readable after the watch
// has stopped.
func (s *Subscription) Store() *reflector.Store { return s.watch.writer.Store() }

// State returns the state of the watch. It never blocks.
func (s *Subscription) State() State { return s.watch.status.get() }

// Phase returns the phase of State.
func (s *Subscription) Phase() Phase { return s.watch.status.current.Load().Phase }

// Source returns the source of the watch.
func (s *Subscription) Source() Source { return s.watch.source }
