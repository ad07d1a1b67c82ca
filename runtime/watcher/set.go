// Package watcher turns LIST and WATCH into events that recover from failures: a
// watch resumes where it was, lists again when it must, and then passes on only
// what has changed. It uses client-go's reflector, which streams lists where the
// API server can, follows bookmarks and answers 410 with a new list.
//
// Watches are shared: a Set has one per Source, however many subscribe, with one
// store and one copy of each object. Each subscription has an inbox of its own,
// so that a slow one does not block others (rule 16).
//
//	client, err := watcher.NewClient(restConfig)
//	set := watcher.NewSet(client, watcher.Config{Log: log})
//	sub := set.Acquire(watcher.Source{Resource: configMaps}, handler)
//	go sub.Run(ctx)      // events go to handler until ctx ends
//	<-sub.Synced()       // the objects that were there have been handled
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

// Handler is given the events of a subscription: first Listed for each object
// that is there, then the changes, in order, one call at a time (rule 12).
//
// It runs on the goroutine of Subscription.Run and may block: only its own
// subscription waits (rule 16). Meanwhile events gather, and those of one object
// become one: the oldest Old, the newest New. A state between two is left out
// only where its labels, annotations and owner references are those of the state
// before or after it, so that a mapper that goes by them requests the same; or
// where eight states of the object wait already. Creations and deletions are
// never left out. It must return soon after ctx ends.
type Handler func(ctx context.Context, ev reflector.Event)

// Config is what a Set may be told. The zero value works and reports nothing.
type Config struct {
	// Log is notified when the phase of a watch changes: Info when it is ready,
	// Warn when it is denied, absent or failing.
	Log *slog.Logger
	// OnChange is called after the phase of a watch has changed, in the order of
	// the changes. It must not block or call the Set.
	OnChange func(Source, State)
	// Compress compresses the objects that are not read, but Secrets.
	Compress bool
}

// Set shares watches between subscriptions. It is safe for concurrent use.
type Set struct {
	client *Client
	cfg    Config

	mu      sync.Mutex
	watches map[Source]*sharedWatch // guarded by mu; those with a reference
}

// NewSet returns a Set without watches.
func NewSet(client *Client, cfg Config) *Set {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Set{client: client, cfg: cfg, watches: map[Source]*sharedWatch{}}
}

// Acquire takes a reference to the watch of source, for one subscription. The
// watch starts when the first of its subscriptions is run, and stops when the
// last reference is given back (rule 15): at the end of Run, or by Release.
func (s *Set) Acquire(source Source, handler Handler) *Subscription {
	source = source.normal()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[source]
	if w == nil {
		w = newSharedWatch(source, s.client, s.cfg)
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

// start starts the watch unless it runs. It outlives ctx, whose values it
// keeps: other subscriptions may share it.
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

// release gives back one reference and, if it was the last, returns when all
// goroutines of the watch have ended.
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
	// Decoded, if not nil, counts what is decoded for the subscription. Set it before
	// Run.
	Decoded *Decoded

	set     *Set
	watch   *sharedWatch
	handler Handler
	inbox   *inbox
	started atomic.Bool // by Run or Release, whichever comes first
}

// Run hands events to the handler until ctx ends, and then gives back the
// reference. The handler is not called again after Run has returned, and if
// this was the last reference, nothing of the watch runs any longer. A
// subscription can be run once; the error is about that alone.
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
	s.watch.leave <- m // the loop runs: this subscription holds a reference
	return nil
}

// Release gives back the reference of a subscription that is not going to be
// run. During and after Run it does nothing.
func (s *Subscription) Release() {
	if s.started.CompareAndSwap(false, true) {
		s.set.release(s.watch)
	}
}

// Synced returns a channel that is closed when the handler has returned from
// the last of the objects that were there (rule 10).
func (s *Subscription) Synced() <-chan struct{} { return s.inbox.synced }

// Waiting returns how many events the handler has not handled yet: how far this
// subscription lags behind its store.
func (s *Subscription) Waiting() int { return int(s.inbox.waiting.Load()) }

// Store returns the store of the watch. It can be read at any time; it is empty
// before the first list and keeps its content after the watch has stopped.
func (s *Subscription) Store() *reflector.Store { return s.watch.writer.Store() }

// State returns the state of the watch. It never blocks.
func (s *Subscription) State() State { return s.watch.status.get() }

// Source returns what is watched.
func (s *Subscription) Source() Source { return s.watch.source }
