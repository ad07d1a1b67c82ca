// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

func TestMain(m *testing.M) {
	if os.Getenv(compileEnv) != "" {
		compile()
	}
	// It would sleep in virtual time until the real time of the start; see package watcher.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	devclustertest.Main(m)
}

// swapping is a Controller on objects of a kind of its own, whose modules are swapped.
type swapping struct {
	t        *testing.T
	cluster  *devcluster.Cluster
	group    string
	ns       string
	client   dynamic.Interface
	objects  dynamic.ResourceInterface
	engine   *Controller
	life     *Life
	observer *observer
	watches  *watcher.Tenant // if nil, there is no bound
	sent     sent            // requests of its watches
	// unlabelled omits the labels of objects.
	unlabelled bool
	started    func() // called before the Controller starts; may be nil

	mu     sync.Mutex
	events []events.Event // about the controller; guarded by mu
}

// setup configures a swapping.
type setup struct {
	Options

	config *rest.Config // if nil, that of the cluster
	shared Shared       // run adds the parts that every Controller needs
}

// swapOptions returns the options of the tests: a short probation, and a short timeout for
// guests that do not return.
func swapOptions() *setup {
	s := &setup{shared: Shared{CacheDir: enginetest.CacheDir()}}
	s.Fallback, s.Source, s.Grant = "worse", "worse.wasm", plan.Grant{File: grant.File{{Manifest: true}}}
	s.Concurrency, s.DrainTimeout = new(int32(4)), "1m"
	s.Limits = v1alpha1.Limits{"timeout": intstr.FromString("2s"), "memory": intstr.FromString("256Ki")}
	s.Rollout = &v1alpha1.Rollout{Probation: "300ms"}
	return s
}

// newSwapping runs a Controller with a module until the test ends.
func newSwapping(t *testing.T, module []byte, opts *setup) *swapping {
	t.Helper()
	cluster := devclustertest.Shared(t)
	w := &swapping{t: t, cluster: cluster, ns: devclustertest.Namespace(t, cluster)}
	w.group = w.ns + ".wasmctl.dev"
	w.define("swaps", "Swap")
	var err error
	if w.client, err = dynamic.NewForConfig(cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	w.objects = w.client.Resource(schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "swaps"}).Namespace(w.ns)
	opts.For = v1alpha1.KindOf("swaps." + w.group)
	if opts.config == nil {
		opts.config = cluster.RESTConfig()
	}
	t.Cleanup(w.run(module, opts))
	return w
}

// define creates a kind of the test's own group in the API server.
func (w *swapping) define(plural, kind string) {
	w.t.Helper()
	devclustertest.Apply(w.t, w.cluster, []byte(strings.NewReplacer("GROUP", w.group, "PLURAL", plural, "SINGULAR", strings.ToLower(kind), "KIND", kind).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: PLURAL, singular: SINGULAR, kind: KIND}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)))
}

// run runs a Controller with a module. The caller must call the returned function to end
// it.
func (w *swapping) run(module []byte, opts *setup) (end func()) {
	w.t.Helper()
	opts.Namespaces = []string{w.ns}
	log := slog.New(quiet{slog.NewTextHandler(w.t.Output(), nil)})
	id := w.identity(opts.config, log)
	shared := opts.shared
	shared.As = func(string, string) (*Identity, func(), error) { return id, func() {}, nil }
	shared.Resolver, shared.CPUs = kinds.NewResolver(id.Client, log), share.NewCPUScheduler(runtime.GOMAXPROCS(0))
	shared.Record = w.recordEvent
	ctx, stop := context.WithCancel(w.t.Context())
	w.engine = New(&shared, opts.Options, log, func(string) {})
	if err := w.engine.Load(ctx, module, load.DigestOf(module), func() {}); err != nil {
		w.t.Fatal(err)
	}
	w.observer = newObserver(w.engine.guests)
	w.engine.guests = w.observer
	if w.started != nil {
		w.started()
	}
	if err := w.engine.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.life = NewLife(named("worse"), log)
	begin := make(chan struct{})
	close(begin)
	ended := make(chan error, 1)
	go func() { ended <- w.life.Run(ctx, begin, nil, w.engine) }()
	return func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

// named is the Source of a controller that is already loaded.
type named string

func (n named) Name() string { return string(n) }

func (n named) Load(context.Context, string, func(string)) Attempt {
	return Attempt{Err: errors.New("it is loaded once")}
}

func (named) Borrow(context.Context, string) ([]byte, func(), error) {
	return nil, nil, errors.New("it is loaded once")
}

func (named) Changed(*admin.Change) {}

// identity returns the identity of a config. It counts the requests of its watches.
func (w *swapping) identity(config *rest.Config, log *slog.Logger) *Identity {
	w.t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	id := &Identity{Config: config}
	var err error
	if id.Client, err = kubeapi.NewClient(config); err != nil {
		w.t.Fatal(err)
	}
	if id.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		w.t.Fatal(err)
	}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		w.sent.RoundTripper = rt
		return &w.sent
	})
	client, err := watcher.NewClient(counted)
	if err != nil {
		w.t.Fatal(err)
	}
	id.Watches = watcher.NewSet(client, watcher.Config{Log: log, Tenant: w.watches})
	return id
}

// swap swaps a module in.
func (w *swapping) swap(module []byte) (uint64, error) {
	number, _, err := w.life.Swap(w.t.Context(), module, rollout.SwapOptions{Why: "test"})
	return number, err
}

// onProbation sets the probation of the next modules. Slow runs do not count, because the
// machine may be slow.
func (w *swapping) onProbation(d time.Duration) {
	w.t.Helper()
	err := w.life.Do(w.t.Context(), func(_ context.Context, c *Controller) (misfit, err error) {
		c.rollout.Options.Probation = probation.Config{Time: d, Slowdown: 1e6, Stall: time.Hour}
		return nil, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// mustSwap swaps in a module that must not be refused.
func (w *swapping) mustSwap(module []byte) uint64 {
	w.t.Helper()
	number, err := w.swap(module)
	if err != nil {
		w.t.Fatal(err)
	}
	return number
}

// verdict waits until a revision is no longer on probation.
func (w *swapping) verdict(number uint64) admin.Revision {
	w.t.Helper()
	var found admin.Revision
	enginetest.Until(w.t, fmt.Sprintf("revision %d has its verdict", number), func() bool {
		for _, g := range w.engine.Revisions() {
			if g.Number == number {
				found = g
			}
		}
		return found.State != "probation"
	})
	return found
}

// put creates or changes an object. The text of its spec ends with the number of the
// object.
func (w *swapping) put(ctx context.Context, i, edit int) error {
	metadata := map[string]any{"name": enginetest.ObjectName(i)}
	if !w.unlabelled {
		metadata["labels"] = map[string]any{"object": enginetest.ObjectName(i)}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.group + "/v1", "kind": "Swap", "metadata": metadata,
		"spec": map[string]any{"text": fmt.Sprintf("%d-%d", edit, i)},
	}}
	w.observer.sent(w.key(i), edit)
	_, err := w.objects.Apply(ctx, enginetest.ObjectName(i), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

func (w *swapping) key(i int) abi.Key {
	return abi.Key{Namespace: w.ns, Name: enginetest.ObjectName(i)}
}

// wantNoFaults checks that no object ran twice at once, more often than it was changed, or
// on an older state.
func (w *swapping) wantNoFaults() {
	w.t.Helper()
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	if faults := w.observer.faults; len(faults) > 0 {
		w.t.Errorf("%d faults: %s", len(faults), strings.Join(faults[:min(5, len(faults))], "; "))
	}
}

// wantReady checks that all watches are ready. A watch becomes ready shortly after it has
// synced, because the watch request follows the list.
func (w *swapping) wantReady() {
	w.t.Helper()
	enginetest.Until(w.t, "all watches are ready", func() bool {
		for _, s := range w.engine.Runtime.Stats().Watches {
			if s.State.Phase != watcher.Ready {
				return false
			}
		}
		return true
	})
}

// sent counts the lists and watches that a process requests. The API server's own figures
// would include those of its garbage collector.
type sent struct {
	http.RoundTripper

	lists, watches atomic.Int64
	// cut counts the streams that the API server has ended: it ends those of a kind whose
	// CRD settles, and those that a busy machine reads too slowly. The watch continues with
	// another stream.
	cut atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	switch q := r.URL.Query(); {
	case r.URL.Path == "/version":
	case q.Get("sendInitialEvents") == "true" || q.Get("watch") == "":
		s.lists.Add(1)
	default:
		s.watches.Add(1)
	}
	res, err := s.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusUnprocessableEntity {
		s.lists.Add(-1) // Kubernetes before 1.34 does not stream lists: a paged list follows
	}
	if err == nil && r.URL.Query().Get("watch") != "" {
		res.Body = &watchBody{ReadCloser: res.Body, cut: &s.cut}
	}
	return res, err
}

// watchBody is the answer to a watch request. It counts an end that the client did not
// cause.
type watchBody struct {
	io.ReadCloser

	cut    *atomic.Int64
	closed atomic.Bool // by the client, or counted
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.closed.Swap(true) {
		b.cut.Add(1)
	}
	return n, err
}

func (b *watchBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// quiet discards the log lines of single runs.
type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "reconcile") {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
