// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// sharedWatch is one watch and its subscribers. Its loop goroutine owns the writer and the subscribers: it applies the changes that
// client-go's reflector reports, and puts the events into the inbox of each subscriber. It never waits for a subscriber.
type sharedWatch struct {
	source Source
	set    *Set
	writer *reflector.Writer
	status *status
	client *Client
	cfg    Config

	kind *kindWatches // with the other watches of the tenant

	ops    chan op          // from the reflector, unbuffered
	join   chan *subscriber // from Subscription.Run
	leave  chan *subscriber // from Subscription.Run
	relist chan struct{}    // has one element if the objects must be listed again
	exited chan struct{}

	refs        int                // guarded by Set.mu
	cancel      context.CancelFunc // guarded by Set.mu; nil before the watch is started
	epoch       atomic.Uint64      // that of the list in the store; see Subscription.Epoch
	decoded     atomic.Int64       // bytes of objects not yet distributed to subscribers
	subscribers []*subscriber      // owned by loop
	listed      bool               // owned by loop; the first list is in the store
}

// subscriber is the loop's view of a subscription.
type subscriber struct {
	inbox   *inbox
	decoded *Decoded // nil if the subscription does not count
	listed  bool     // owned by loop; the subscriber has received the content of the store
}

// op is one call of the reflector.
type op struct {
	kind    opKind
	obj     *reflector.Object
	list    []*reflector.Object
	version string // of the list or the bookmark
	listing *listing
	epoch   uint64 // in which the list was requested
}

// at returns the version of the operation.
func (o *op) at() string {
	if o.obj != nil {
		return o.obj.ResourceVersion()
	}
	return o.version
}

type opKind uint8

const (
	opApply opKind = iota
	opDelete
	opReplace
	opBookmark
	opCurrent // the version that the API server has now; the store may not include it
)

func newSharedWatch(source Source, set *Set) *sharedWatch {
	writer := reflector.NewWriter()
	w := &sharedWatch{
		source: source, set: set, writer: writer, client: set.client, cfg: set.cfg,
		status: newStatus(source, writer.Store(), set.cfg),
		ops:    make(chan op), join: make(chan *subscriber), leave: make(chan *subscriber),
		relist: make(chan struct{}, 1), exited: make(chan struct{}),
	}
	w.epoch.Store(set.epoch.Load())
	return w
}

// run watches until ctx ends, and returns when everything it started has ended.
func (w *sharedWatch) run(ctx context.Context) {
	defer close(w.exited)
	tenant := w.cfg.Tenant
	if tenant.enter(ctx, w.status.refused) != nil {
		return
	}
	defer tenant.leave()
	w.kind = tenant.join(w.source, w.writer.Store(), w.cfg.Compress && !w.source.secret())
	defer tenant.part(w.source, w.kind, w.writer.Store())
	w.writer.Account = &tenant.account
	defer w.writer.Close()
	var reflecting sync.WaitGroup
	reflecting.Go(func() { w.reflectAll(ctx) })
	if w.kind.compressor != nil {
		reflecting.Go(func() { w.compress(ctx) })
	}
	w.loop(ctx)
	reflecting.Wait()
}

// reflectAll runs one reflector after the other, each of which begins with a list.
func (w *sharedWatch) reflectAll(ctx context.Context) {
	for ctx.Err() == nil {
		once, cancel := context.WithCancel(ctx)
		var reflecting sync.WaitGroup
		reflecting.Go(func() { w.reflect(once) })
		select {
		case <-w.relist:
		case <-ctx.Done():
		}
		cancel()
		reflecting.Wait()
	}
}

// reflect runs client-go's reflector, which calls w.ops through a sink.
func (w *sharedWatch) reflect(ctx context.Context) {
	epoch := w.set.epoch.Load()
	decoder := &decoder{
		source: w.source, options: w.source.options(), store: w.writer.Store(), newEpoch: epoch != w.epoch.Load(), log: w.cfg.Log, watches: w.kind,
		decoded: &w.decoded, arrived: &w.status.arrived,
	}
	api := w.client.requests(w.source, decoder)
	lw := &listWatcher{api: api, status: w.status, backoff: newBackoff(w.cfg.Backoff, w.set.retries), lists: api.listsFirst(ctx), ops: w.ops}
	defer lw.close()
	// The status reports, in the user's terms, what the reflector would log.
	silent := klog.Logger{}
	r := cache.NewReflectorWithOptions(
		&listerWatcher{&cache.ListWatch{ListWithContextFunc: lw.list, WatchFuncWithContext: lw.watch}, lw}, nil,
		&sink{source: w.source, lw: lw, done: ctx.Done(), epoch: epoch},
		cache.ReflectorOptions{
			Name: w.source.String(), TypeDescription: w.source.Name(), Logger: &silent,
			Backoff: &wait.Backoff{Duration: time.Millisecond}, // see type backoff
		})
	r.RunWithContext(klog.NewContext(ctx, silent))
}

func (w *sharedWatch) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case op := <-w.ops:
			w.apply(op)
		case m := <-w.join:
			w.share() // m does not count what was decoded for others
			w.subscribers = append(w.subscribers, m)
			w.share()
			if w.listed {
				w.handOver(m)
			}
		case m := <-w.leave:
			w.subscribers = slices.DeleteFunc(w.subscribers, func(n *subscriber) bool { return n == m })
		}
	}
}

func (w *sharedWatch) apply(op op) {
	w.share()
	if op.kind != opReplace && w.writer.Backwards(op.at()) {
		w.set.ranBackwards(w)
		return // the new list has it
	}
	switch op.kind {
	case opApply:
		w.store(op)
	case opDelete:
		w.writer.Delete(op.obj, w.emit)
	case opReplace:
		w.store(op)
		op.listing.end()
		w.epoch.Store(op.epoch)
		w.listed = true
		for _, m := range w.subscribers {
			if !m.listed {
				w.handOver(m)
			}
		}
		w.status.listed(op.listing.asked)
	case opBookmark:
		w.writer.Advance(op.version)
	case opCurrent:
	}
	w.cfg.Tenant.charge.release(w.cfg.Tenant.Bytes)
}

// store applies a change or a list. If another watch of the kind has decoded the same objects at the same time, one copy remains.
func (w *sharedWatch) store(op op) {
	if w.kind.shared() {
		w.kind.storing.Lock()
		defer w.kind.storing.Unlock()
		for i, o := range op.list {
			if !o.Stored() {
				op.list[i] = w.kind.known(o)
			}
		}
		if op.obj != nil {
			op.obj = w.kind.known(op.obj)
		}
	}
	if op.kind == opReplace {
		w.writer.Replace(op.list, op.version, w.emit)
	} else {
		w.writer.Apply(op.obj, w.emit)
	}
}

// emit passes an event to the subscribers that have received the content before it.
func (w *sharedWatch) emit(ev reflector.Event) {
	for _, m := range w.subscribers {
		if m.listed {
			m.inbox.put(ev)
		}
	}
}

// handOver gives a new subscriber the content of the store. The next event is the first change after it.
func (w *sharedWatch) handOver(m *subscriber) {
	m.listed = true
	m.inbox.join(w.writer.Store().List())
}

// listerWatcher is the source that client-go's reflector calls.
type listerWatcher struct {
	*cache.ListWatch
	lw *listWatcher
}

// IsWatchListSemanticsUnSupported makes the reflector list before it watches. Otherwise, the list is streamed if the API server supports
// it.
func (w *listerWatcher) IsWatchListSemanticsUnSupported() bool { return w.lw.lists }
