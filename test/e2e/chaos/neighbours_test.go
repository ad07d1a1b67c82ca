// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// neighbours are two controllers of one process, on the same objects.
type neighbours struct {
	*inProcess

	t      *testing.T
	ns     string
	client dynamic.Interface
	stop   context.CancelFunc
	ended  chan error
}

// newNeighbours runs configmapgenerator, which makes a ConfigMap for each generator, as
// "good", and a module that misbehaves as "bad". They share four workers. If wrap is not
// nil, it wraps the transport of their requests.
func newNeighbours(t *testing.T, bad wasmctl.Module, wrap func(http.RoundTripper) http.RoundTripper) *neighbours {
	t.Helper()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	n := &neighbours{t: t, ns: devclustertest.Namespace(t, cluster), client: client, ended: make(chan error, 1)}
	config := rest.CopyConfig(cluster.RESTConfig())
	if wrap != nil {
		config.Wrap(wrap)
	}
	if n.inProcess, err = newInProcess(config, wasmctl.Options{Workers: 4}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	n.stop = stop
	t.Cleanup(stop)
	n.load(ctx, "bad", bad)
	n.load(ctx, "good", wasmctl.File(e2e.Example(t, "configmapgenerator")))
	go func() { n.ended <- n.Run(ctx) }()
	return n
}

func (n *neighbours) load(ctx context.Context, name string, m wasmctl.Module) {
	n.t.Helper()
	_, err := n.Load(ctx, m, wasmctl.ControllerOptions{
		ControllerSpec: v1alpha1.ControllerSpec{Name: name, Namespaces: []string{n.ns}, CommonSpec: v1alpha1.CommonSpec{
			For: v1alpha1.KindOf("configmapgenerators.examples.wasmctl.dev"), Concurrency: new(int32(4)), Limits: v1alpha1.Limits{"timeout": intstr.FromString("1h")},
			Grant: &v1alpha1.Grant{Manifest: true},
		}},
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// create creates generators. The last byte of their content selects the behavior of the guest
// modes.wasm.
func (n *neighbours) create(from, to int, mode byte) {
	n.t.Helper()
	for i := from; i < to; i++ {
		e2e.CreateGenerator(n.t, n.client, n.ns, fmt.Sprintf("g%d", i), content(i)+string(rune(mode)))
	}
}

// confirm waits until the good controller has made each ConfigMap.
func (n *neighbours) confirm(count int) {
	n.t.Helper()
	enginetest.Until(n.t, fmt.Sprintf("%d ConfigMaps", count), func() bool {
		list, err := n.client.Resource(e2e.ConfigMaps).Namespace(n.ns).List(n.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		return err == nil && len(list.Items) == count
	})
}

// status returns the status of a controller.
func (n *neighbours) status(name string) admin.Controller {
	for _, c := range n.Admin().Status().Controllers {
		if c.Name == name {
			return c
		}
	}
	n.t.Fatalf("there is no controller %s", name)
	return admin.Controller{}
}

// finish stops both controllers, and checks rule 1 for the good one.
func (n *neighbours) finish() {
	n.t.Helper()
	n.stop()
	if err := <-n.ended; err != nil {
		n.t.Errorf("run: %v", err)
	}
	e2e.WantNoneTwice(n.t, slices.DeleteFunc(e2e.ParseReconciles(n.log.String()), func(r e2e.Reconcile) bool { return !e2e.ContainsAll(r.Text, []string{`"controller":"good"`}) }))
}

// hanging blocks the requests of one controller for its objects until it is released. It
// counts the open watches.
type hanging struct {
	http.RoundTripper

	manager       string // the field manager of the controller
	started, done atomic.Int64
	let           chan struct{}

	mu    sync.Mutex
	open  map[string]int // streams now, by path; guarded by mu
	twice []string       // paths that had two at once; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("fieldManager") == h.manager && r.Method == http.MethodPatch {
		h.started.Add(1)
		defer h.done.Add(1)
		select {
		case <-h.let:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if query.Get("watch") == "" {
		return h.RoundTripper.RoundTrip(r)
	}
	h.count(r.URL.Path, 1)
	res, err := h.RoundTripper.RoundTrip(r)
	if err != nil {
		h.count(r.URL.Path, -1)
		return nil, err
	}
	res.Body = &stream{ReadCloser: res.Body, closed: sync.OnceFunc(func() { h.count(r.URL.Path, -1) })}
	return res, nil
}

func (h *hanging) count(path string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[path] += n; h.open[path] > 1 {
		h.twice = append(h.twice, path)
	}
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser

	closed func()
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.closed()
	return s.ReadCloser.Close()
}

// TestNeighbours_OneThatHangs: rule 16: while every reconcile of one controller hangs,
// and it has taken its share of the workers, the other one does all of its work.
func TestNeighbours_OneThatHangs(t *testing.T) {
	t.Parallel()
	h := &hanging{manager: "wasmctl/bad", let: make(chan struct{}), open: map[string]int{}}
	n := newNeighbours(t, wasmctl.File(e2e.Example(t, "configmapgenerator")), func(rt http.RoundTripper) http.RoundTripper {
		h.RoundTripper = rt
		return h
	})
	const count = 40
	n.create(0, count/2, 0)
	enginetest.Until(t, "the bad one hangs", func() bool { return h.started.Load() > 0 })
	n.create(count/2, count, 0)
	n.confirm(count)
	bad := n.status("bad")
	if done := h.done.Load(); done != 0 || bad.Running == 0 {
		t.Errorf("the bad one has done %d and runs %d, so that nothing was shown", done, bad.Running)
	}
	if bad.Ready == 0 {
		t.Error("nothing waits for the bad one")
	}
	// One watch of the generators for both, and one of the ConfigMaps.
	h.mu.Lock()
	if len(h.open) != 2 || len(h.twice) > 0 {
		t.Errorf("watches of %v, want 2; twice at once %v", slices.Collect(maps.Keys(h.open)), h.twice)
	}
	h.mu.Unlock()
	close(h.let)
	enginetest.Until(t, "the bad one goes on", func() bool { return h.done.Load() >= count })
	n.finish()
}

// TestNeighbours_OneThatTrapsOrFloods: rule 17: a controller whose every run traps, or
// requeues at once, keeps no other controller from a worker, and causes no failure in
// it.
func TestNeighbours_OneThatTrapsOrFloods(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]byte{"traps": 1, "floods": 11} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbours(t, wasmctl.File(e2e.Guests+"modes.wasm"), nil)
			const count = 40
			n.create(0, count, mode)
			n.confirm(count)
			bad := n.status("bad")
			if mode == 1 && bad.Failures[string(abi.FailureTrap)] == 0 {
				t.Errorf("no traps: %v", bad.Failures)
			}
			// It does not run forever: objects that trap repeatedly are quarantined.
			enginetest.Until(t, "the bad controller continues", func() bool { return n.status("bad").Runs >= 2*count })
			good := n.status("good")
			for kind, failed := range good.Failures {
				if failed > 0 {
					t.Errorf("the good one failed %d times: %s", failed, kind)
				}
			}
			t.Logf("for %d objects: %d runs of the good one, %d of the bad one", count, good.Runs, bad.Runs)
			n.finish()
		})
	}
}
