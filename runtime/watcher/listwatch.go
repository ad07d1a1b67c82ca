package watcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// listWatcher makes the requests of one watch for client-go's reflector. It
// packs each object as soon as the client has decoded it, waits out the
// back-off, and reports to status what becomes of each request: the reflector
// keeps some failures to itself.
type listWatcher struct {
	source  Source
	client  dynamic.ResourceInterface
	store   *reflector.Store
	status  *status
	backoff *backoff
	log     *slog.Logger

	mu      sync.Mutex
	stopped bool           // guarded by mu
	running sync.WaitGroup // requests and streams; added to under mu, while not stopped
}

var errStopped = errors.New("the watch was stopped")

// Bounds of requests, so that a connection on which nothing comes any more is
// noticed (rule 14). client-go's own pings, where the connection is HTTP/2,
// notice after 45 s that nobody is there; these also notice a proxy that answers
// for a server that it has lost.
const (
	// listTimeout bounds one request of a list. kube-apiserver gives up after one
	// minute; the rest is for slow lines.
	listTimeout = 5 * time.Minute
	// watchMargin is how much longer than the time that was asked for a watch may
	// last. client-go asks for 5 to 10 minutes.
	watchMargin = 30 * time.Second
	// maxWatchTimeout is the longest time that client-go asks for.
	maxWatchTimeout = 10 * time.Minute
)

// enter counts a request or stream, unless close was called.
func (lw *listWatcher) enter() bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.stopped {
		return false
	}
	lw.running.Add(1)
	return true
}

// close returns when all requests and streams have ended. Their context must
// have ended before. (The reflector does not wait for its own list requests.)
func (lw *listWatcher) close() {
	lw.mu.Lock()
	lw.stopped = true
	lw.mu.Unlock()
	lw.running.Wait()
}

// list requests one page, or the whole.
func (lw *listWatcher) list(ctx context.Context, opts metav1.ListOptions) (k8sruntime.Object, error) {
	if !lw.enter() {
		return nil, errStopped
	}
	defer lw.running.Done()
	if err := lw.backoff.wait(ctx, true); err != nil {
		return nil, err
	}
	opts.LabelSelector, opts.FieldSelector = lw.source.LabelSelector, lw.source.FieldSelector
	lw.status.attempted()
	bounded, cancel := context.WithTimeoutCause(ctx, listTimeout, errNoAnswer)
	defer cancel()
	page, err := lw.client.List(bounded, opts)
	if err != nil {
		err = causeOf(bounded, err)
		// An expired resourceVersion is asked for once more without one, at once.
		lw.failed(ctx, err, false, !isExpired(err))
		return nil, err
	}
	lw.status.progressed()
	if opts.Continue == "" {
		lw.status.arrived.Store(0)
	}
	return lw.packList(page), nil
}

func (lw *listWatcher) packList(page *unstructured.UnstructuredList) k8sruntime.Object {
	list := &metainternalversion.List{Items: make([]k8sruntime.Object, 0, len(page.Items))}
	list.ResourceVersion = page.GetResourceVersion()
	list.Continue = page.GetContinue()
	for i := range page.Items {
		if o := lw.pack(&page.Items[i]); o != nil {
			list.Items = append(list.Items, o)
		}
		page.Items[i].Object = nil // the decoded form can go before the page is through
	}
	lw.status.arrived.Add(int64(len(list.Items)))
	return list
}

// pack returns the packed object. A state that the store already has is not
// encoded again, so that a relist costs no second copy. An object that cannot
// be packed must not stop the others: with a warning it is left out or, where
// the store has it, stands at its last state, so that it is not taken for
// deleted and its deletion is seen.
func (lw *listWatcher) pack(u *unstructured.Unstructured) *reflector.Object {
	ref := reflector.ObjectRef{Namespace: u.GetNamespace(), Name: u.GetName()}
	known := lw.store.Get(ref)
	if known != nil && known.UID() != string(u.GetUID()) {
		known = nil
	}
	if rv := u.GetResourceVersion(); known != nil && rv != "" && known.ResourceVersion() == rv {
		return known
	}
	o, err := reflector.Pack(u.Object, lw.source.options())
	if err != nil {
		lw.log.Warn("object left out: it cannot be packed", "watch", lw.source.String(), "object", ref.String(), "error", err)
		return known
	}
	return o
}

// watch requests a watch; with SendInitialEvents the list comes first in it.
func (lw *listWatcher) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if !lw.enter() {
		return nil, errStopped
	}
	if err := lw.backoff.wait(ctx, false); err != nil {
		lw.running.Done()
		return nil, err
	}
	streaming := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	opts.LabelSelector, opts.FieldSelector = lw.source.LabelSelector, lw.source.FieldSelector
	lw.status.attempted()
	bounded, cancel := context.WithTimeoutCause(ctx, watchTimeout(opts)+watchMargin, errNoAnswer)
	w, err := lw.client.Watch(bounded, opts)
	if err != nil {
		cancel()
		lw.running.Done()
		err = causeOf(bounded, err)
		lw.failed(ctx, err, streaming, true)
		return nil, err
	}
	s := newStream(lw, w, streaming, lw.status.opened(streaming))
	s.expired = bounded.Done()
	go func() {
		defer lw.running.Done()
		defer cancel()
		s.run(ctx)
	}()
	return s, nil
}

// watchTimeout returns how long the watch was asked to last.
func watchTimeout(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return maxWatchTimeout
	}
	return time.Duration(*opts.TimeoutSeconds) * time.Second
}

// causeOf returns err, or why ctx ended where that is ours.
func causeOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errNoAnswer) {
		return errNoAnswer
	}
	return err
}

// failed reports a failure, unless it is only that the watch is being stopped.
// With delay, the next request waits.
func (lw *listWatcher) failed(ctx context.Context, err error, streaming, delay bool) {
	if ctx.Err() != nil {
		return
	}
	phase := lw.status.failed(err, streaming)
	lw.log.Debug("watch request failed", "watch", lw.source.String(), "error", fmt.Sprint(err))
	if delay {
		lw.backoff.failed(err, phase == Denied || phase == Absent, streaming)
	}
}
