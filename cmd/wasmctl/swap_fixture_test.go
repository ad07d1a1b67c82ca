package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/probation"
	"github.com/wasmctl/wasmctl/runtime/watcher"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Modes of the guest worse.wasm.
const (
	modeGood = byte(iota)
	modeTraps
	modeTrapsOnTenth
	modeSpins
	modeLeaks
	modeConflicts
)

// worse is the guest worse.wasm in a mode, with a digest of its own for each n.
func worse(mode byte, n int) []byte {
	at := bytes.Index(wasm.Worse, []byte("mode:"))
	out := bytes.Clone(wasm.Worse)
	out[at+len("mode:")] = mode
	return numbered(out, n)
}

// numbered is a module with one more custom section, and so another digest.
func numbered(module []byte, n int) []byte {
	payload := fmt.Appendf([]byte{1, 'n'}, "%d", n)
	return append(append(bytes.Clone(module), 0, byte(len(payload))), payload...)
}

// swapping is a session in this process, on objects of a kind of its own.
type swapping struct {
	t        *testing.T
	cluster  *devcluster.Cluster
	group    string
	ns       string
	client   dynamic.Interface
	objects  dynamic.ResourceInterface
	session  *session
	observer *observer
	sent     sent // by its watches
	// unlabelled leaves the labels of objects out.
	unlabelled bool
}

// swapOptions are those of the tests: a short probation, and a short timeout for
// guests that do not return.
func swapOptions() *runOptions {
	return &runOptions{
		processOptions: processOptions{socket: "none", cacheDir: compiledModules},
		controllerOptions: controllerOptions{
			concurrency: 4, timeout: 2 * time.Second, memoryBytes: 256 << 10, drain: time.Minute, probation: 300 * time.Millisecond,
			rights: rightsOptions{grantManifest: true},
		},
	}
}

// newSwapping runs a session with a module until the test ends.
func newSwapping(t *testing.T, module []byte, opts *runOptions) *swapping {
	t.Helper()
	return newSwappingWith(t, module, opts, func(*process) {})
}

// newSwappingWith is newSwapping after something was done with the process.
func newSwappingWith(t *testing.T, module []byte, opts *runOptions, with func(*process)) *swapping {
	t.Helper()
	cluster := devclustertest.Shared(t)
	w := &swapping{t: t, cluster: cluster, ns: devclustertest.Namespace(t, cluster)}
	w.group = w.ns + ".wasmctl.dev"
	devclustertest.Apply(t, cluster, []byte(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: swaps.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: swaps, singular: swap, kind: Swap}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, "GROUP", w.group)))
	var err error
	if w.client, err = dynamic.NewForConfig(cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	w.objects = w.client.Resource(schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "swaps"}).Namespace(w.ns)
	opts.module, opts.forKind, opts.namespaces, opts.kubeconfig = "worse.wasm", "swaps."+w.group, []string{w.ns}, cmp.Or(opts.kubeconfig, cluster.Kubeconfig())
	w.run(module, opts, with)
	return w
}

func (w *swapping) run(module []byte, opts *runOptions, with func(*process)) {
	w.t.Helper()
	log := slog.New(quiet{slog.NewTextHandler(w.t.Output(), nil)})
	p := &process{opts: &opts.processOptions, log: log}
	ctx, stop := context.WithCancel(w.t.Context())
	if err := p.connect(ctx); err != nil {
		w.t.Fatal(err)
	}
	w.sent.counted(w.t, p)
	with(p)
	w.session = &session{process: p, opts: &opts.controllerOptions, log: log}
	p.want(w.session.opts).loaded = w.session
	if err := w.session.load(ctx, module); err != nil {
		w.t.Fatal(err)
	}
	w.observer = newObserver(w.session.guests)
	w.session.guests = w.observer
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, nil) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		if err := p.close(); err != nil {
			w.t.Error(err)
		}
	})
}

// swap swaps bytes in.
func (w *swapping) swap(module []byte) (uint64, error) {
	var number uint64
	err := w.session.replace(w.t.Context(), func(ctx context.Context) (err error) {
		number, err = w.session.swap(ctx, module, swapHow{why: "test"})
		return err
	})
	return number, err
}

// onProbation sets how long the next modules are on probation. That they are slow
// is no reason here: the machine may be.
func (w *swapping) onProbation(d time.Duration) {
	w.t.Helper()
	err := w.session.do(w.t.Context(), func(context.Context) error {
		w.session.probation = probation.Config{Time: d, Slowdown: 1e6, Stall: time.Hour}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// mustSwap swaps bytes in that are not refused.
func (w *swapping) mustSwap(module []byte) uint64 {
	w.t.Helper()
	number, err := w.swap(module)
	if err != nil {
		w.t.Fatal(err)
	}
	return number
}

// verdict waits until a generation is not on probation any more.
func (w *swapping) verdict(number uint64) admin.Generation {
	w.t.Helper()
	var found admin.Generation
	until(w.t, fmt.Sprintf("generation %d has its verdict", number), func() bool {
		for _, g := range w.session.trials.generations() {
			if g.Number == number {
				found = g
			}
		}
		return found.State != "probation"
	})
	return found
}

// put creates or changes an object; the text of its spec ends with the number of
// the object.
func (w *swapping) put(ctx context.Context, i, revision int) error {
	metadata := map[string]any{"name": objectName(i)}
	if !w.unlabelled {
		metadata["labels"] = map[string]any{"object": objectName(i)}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.group + "/v1", "kind": "Swap", "metadata": metadata,
		"spec": map[string]any{"text": fmt.Sprintf("%d-%d", revision, i)},
	}}
	w.observer.sent(w.key(i), revision)
	_, err := w.objects.Apply(ctx, objectName(i), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

func (w *swapping) key(i int) abi.Key { return abi.Key{Namespace: w.ns, Name: objectName(i)} }

// wantNoFaults checks that nothing ran twice at once, more often than it was
// changed, or on an older state.
func (w *swapping) wantNoFaults() {
	w.t.Helper()
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	if faults := w.observer.faults; len(faults) > 0 {
		w.t.Errorf("%d faults: %s", len(faults), strings.Join(faults[:min(5, len(faults))], "; "))
	}
}

func objectName(i int) string { return fmt.Sprintf("o%d", i) }

// sent counts the lists and watches that a process asks for. The API server's
// own figures would have those of its garbage collector in them.
type sent struct {
	http.RoundTripper

	lists, watches atomic.Int64
	// cut counts the streams that the API server has ended: it ends those of a kind
	// whose CRD settles, and those that a busy machine reads too slowly. The watch
	// goes on with another.
	cut atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	switch q := r.URL.Query(); {
	case q.Get("sendInitialEvents") == "true" || q.Get("watch") == "":
		s.lists.Add(1)
	default:
		s.watches.Add(1)
	}
	res, err := s.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		res.Body = &watchBody{ReadCloser: res.Body, cut: &s.cut}
	}
	return res, err
}

// watchBody is the answer to a watch request. It counts an end of it that is not
// the client's doing.
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

// counted makes the watches of p anew, with every request counted.
func (s *sent) counted(t *testing.T, p *process) {
	t.Helper()
	rc := rest.CopyConfig(p.restConfig)
	rc.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		s.RoundTripper = rt
		return s
	})
	client, err := watcher.NewClient(rc)
	if err != nil {
		t.Fatal(err)
	}
	p.watches = watcher.NewSet(client, watcher.Config{Log: p.log})
}

// quiet drops the lines of single runs.
type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "reconcile") {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
