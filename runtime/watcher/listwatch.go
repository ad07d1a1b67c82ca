// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// listWatcher makes the requests of one watch for client-go's reflector. It waits for the back-off, and reports the result of each request
// to status, because the reflector does not report all failures.
type listWatcher struct {
	api     *requests
	status  *status
	backoff *backoff
	lists   bool      // see requests.listsFirst
	listing *listing  // the last list; nil before the first; belongs to the reflector's goroutine
	until   time.Time // the requested end of the last watch; belongs to the reflector's goroutine
	ops     chan<- op // to the loop of the watch

	mu      sync.Mutex
	stopped bool           // guarded by mu
	running sync.WaitGroup // requests and streams; incremented under mu, unless stopped
}

var errStopped = errors.New("the watch was stopped")

// Timeouts of requests, so that a silent connection is noticed (rule 14). On HTTP/2, client-go's own pings detect a dead peer after 45 s;
// these timeouts also detect a proxy that still answers although it has lost its server.
const (
	// listTimeout bounds one list request. kube-apiserver gives up after one minute; the rest allows for slow networks.
	listTimeout = 5 * time.Minute
	// watchMargin is how much longer than requested a watch may last. client-go requests 5 to 10 minutes.
	watchMargin = 30 * time.Second
	// maxWatchTimeout is the longest duration that client-go requests.
	maxWatchTimeout = 10 * time.Minute
)

// enter counts a request or stream. It returns false if close was called.
func (lw *listWatcher) enter() bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.stopped {
		return false
	}
	lw.running.Add(1)
	return true
}

// close returns when all requests and streams have ended. The caller must have canceled their context. (The reflector does not wait for its
// own list requests.)
func (lw *listWatcher) close() {
	lw.mu.Lock()
	lw.stopped = true
	lw.mu.Unlock()
	lw.running.Wait()
	lw.listing.end()
}

// begin begins a list, which ends when it is stored, when it fails, or when the next one begins.
func (lw *listWatcher) begin(ctx context.Context, opts metav1.ListOptions) {
	lw.listing.end()
	lw.listing = lw.api.decoder.watches.list(ctx, lw.api.decoder.store)
	if opts.ResourceVersion == "" { // otherwise the list can come from a cache
		lw.listing.asked = time.Now()
	}
	lw.status.arrived.Store(0)
}

// list requests one page, or the whole list.
func (lw *listWatcher) list(ctx context.Context, opts metav1.ListOptions) (k8sruntime.Object, error) {
	if !lw.enter() {
		return nil, errStopped
	}
	defer lw.running.Done()
	if err := lw.backoff.wait(ctx, true); err != nil {
		return nil, err
	}
	lw.status.attempted()
	if (lw.lists || lw.api.source.Shard.N > 0) && opts.ResourceVersion == "0" { // the cache may be outdated
		opts.ResourceVersion, opts.Limit = "", 0
	}
	if opts.Continue == "" {
		lw.begin(ctx, opts)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, listTimeout, errNoAnswer)
	defer cancel()
	page, err := lw.api.list(bounded, opts, lw.listing)
	if err != nil {
		err = causeOf(bounded, err)
		lw.listing.end()
		// After an expired resourceVersion, the reflector immediately lists again without one.
		lw.failed(ctx, err, false, !isExpired(err))
		return nil, err
	}
	lw.status.progressed()
	return page, nil
}

// watch requests a watch; with SendInitialEvents, it begins with the list.
func (lw *listWatcher) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if !lw.enter() {
		return nil, errStopped
	}
	if err := lw.backoff.wait(ctx, false); err != nil {
		lw.running.Done()
		return nil, err
	}
	streaming := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	lw.status.attempted()
	if streaming {
		lw.begin(ctx, opts)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, watchTimeout(opts)+watchMargin, errNoAnswer)
	w, err := lw.api.watch(bounded, opts)
	if err != nil {
		cancel()
		lw.running.Done()
		err = causeOf(bounded, err)
		lw.listing.end()
		lw.failed(ctx, err, streaming, true)
		return nil, err
	}
	if lw.interrupted(opts) && !streaming && lw.enter() {
		go func() {
			defer lw.running.Done()
			lw.checkOrder(bounded)
		}()
	}
	s := newStream(lw, w, lw.status.opened(streaming))
	s.expired = bounded.Done()
	if streaming {
		s.list = lw.listing
	}
	go func() {
		defer lw.running.Done()
		defer cancel()
		s.run(ctx)
	}()
	return s, nil
}

// watchTimeout returns the requested duration of the watch.
func watchTimeout(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return maxWatchTimeout
	}
	return time.Duration(*opts.TimeoutSeconds) * time.Second
}

// causeOf returns err, or errNoAnswer if that is why ctx ended.
func causeOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errNoAnswer) {
		return errNoAnswer
	}
	return err
}

// failed reports a failure, unless the watch is being stopped. With delay, the next request waits.
func (lw *listWatcher) failed(ctx context.Context, err error, streaming, delay bool) {
	if ctx.Err() != nil {
		return
	}
	phase := lw.status.failed(err, streaming)
	lw.api.decoder.log.Debug("watch request failed", "watch", lw.api.source.String(), "error", fmt.Sprint(err))
	if delay {
		lw.backoff.failed(err, phase, streaming)
	}
}
