// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// guests is a Runtime with modules, on ConfigMaps of a namespace of its own.
type guests struct {
	*Runtime
	t       *testing.T
	cluster *devcluster.Cluster
	ns      string
	client  kubernetes.Interface
	stop    func() error // ends Run, and returns its error
}

func newGuests(t *testing.T) *guests {
	t.Helper()
	return newGuestsIn(t, devclustertest.Namespace(t, devclustertest.Shared(t)), Options{})
}

// newGuestsIn runs a Runtime with options in a namespace that others may share.
func newGuestsIn(t *testing.T, ns string, o Options) *guests {
	t.Helper()
	cluster := devclustertest.Shared(t)
	r := &guests{t: t, cluster: cluster, ns: ns}
	o.Logger, o.CacheDir = slog.New(slog.NewTextHandler(t.Output(), nil)), enginetest.CacheDir()
	var err error
	if r.client, err = kubernetes.NewForConfig(cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	r.Runtime, err = New(cluster.RESTConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = r.stop() }) // a test checks its error
	return r
}

// options returns the options of a test's controller.
func (r *guests) options(name string) ControllerOptions {
	o := ControllerOptions{ControllerSpec: configmaps(name)}
	o.Namespaces, o.Grant = []string{r.ns}, &v1alpha1.Grant{Manifest: true}
	return o
}

// configmaps returns the spec of a controller of ConfigMaps.
func configmaps(name string) v1alpha1.ControllerSpec {
	return v1alpha1.ControllerSpec{Name: name, CommonSpec: v1alpha1.CommonSpec{For: v1alpha1.KindOf("configmaps")}}
}

func (r *guests) load(name string, wasm []byte) *Controller {
	r.t.Helper()
	c, err := r.Load(r.t.Context(), Bytes(wasm), r.options(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *guests) create(name string) {
	r.t.Helper()
	_, err := r.client.CoreV1().ConfigMaps(r.ns).Create(r.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
}

// runs counts the runs of the only controller.
func (r *guests) runs() uint64 { return r.Admin().Status().Controllers[0].Runs }

// metrics returns the page for Prometheus.
func (r *guests) metrics() string {
	page := httptest.NewRecorder()
	r.Metrics().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics?detail=full", nil))
	return page.Body.String()
}

// TestRuntime_TwoInOneProcess: two Runtimes share neither names, metrics nor status, and
// interrupting one does not affect the other.
func TestRuntime_TwoInOneProcess(t *testing.T) {
	a, b := newGuests(t), newGuests(t)
	first, second := a.load("twin", enginetest.Worse(enginetest.Spins, 0)), b.load("twin", enginetest.Worse(enginetest.Good, 0))
	a.create("x")
	b.create("y")
	none := `result="success"} 0`
	enginetest.Until(t, "both have runs", func() bool {
		return a.Admin().Status().Controllers[0].Running > 0 && !strings.Contains(b.metrics(), none)
	})
	if page := a.metrics(); !strings.Contains(page, none) {
		t.Errorf("its module never returns, and its metrics are\n%s", page)
	}
	for _, r := range []*guests{a, b} {
		c := r.Admin().Status().Controllers
		if len(c) != 1 || len(c[0].Watches) != 1 || !strings.Contains(c[0].Watches[0].Source, r.ns) {
			t.Errorf("status %+v", c)
		}
	}
	a.Interrupt()
	if err := a.stop(); !errors.Is(err, ErrForced) || first.Running() {
		t.Errorf("interrupted: %v; it runs: %t", err, first.Running())
	}
	if revision, err := second.Swap(t.Context(), Bytes(enginetest.Worse(enginetest.Good, 1)), SwapOptions{}); err != nil || revision != 2 {
		t.Errorf("the other does not swap: revision %d: %v", revision, err)
	}
	before := b.runs()
	b.create("z")
	enginetest.Until(t, "the other goes on", func() bool { return b.runs() > before })
	if err := b.stop(); err != nil {
		t.Errorf("the other stopped with %v", err)
	}
}

// The computing time of all controllers of a tenant is in its account.
func TestTenants_AreChargedForComputing(t *testing.T) {
	r := newGuestsIn(t, devclustertest.Namespace(t, devclustertest.Shared(t)), Options{MemoryBudget: 1 << 30})
	for _, name := range []string{"one", "two"} {
		o := r.options(name)
		o.Tenant = "team"
		if _, err := r.Load(t.Context(), Bytes(enginetest.Worse(enginetest.Good, 0)), o); err != nil {
			t.Fatal(err)
		}
	}
	r.create("x")
	enginetest.Until(t, "both run, and their tenant is charged", func() bool {
		list := r.Admin().Status().Tenants
		return len(list) == 1 && list[0].Name == "team" && list[0].Computing > 0 && !strings.Contains(r.metrics(), `result="success"} 0`)
	})
}

// With several controllers, one that swaps to a module that has to wait is still listed.
func TestRuntime_ControllerThatWaitsIsStillThere(t *testing.T) {
	r := newGuests(t)
	r.load("first", enginetest.Worse(enginetest.Good, 0))
	managedController, err := r.Ensure("controller", func() (Module, ControllerOptions, error) {
		return Bytes(enginetest.Worse(enginetest.Good, 1)), r.options("controller"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := managedController.Started(t.Context()); err != nil || !managedController.Running() {
		t.Fatalf("it runs: %t: %v", managedController.Running(), err)
	}
	waits := enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{
		Version: "1", Watches: []abi.Watch{{Group: r.ns + ".wasmctl.dev", Version: "v1", Kind: "Gadget", Map: "label:swap"}},
	})
	ended := make(chan error, 1)
	go func() {
		_, err := managedController.Swap(t.Context(), Bytes(waits), SwapOptions{})
		ended <- err
	}()
	enginetest.Until(t, "status says what the module waits for", func() bool {
		for _, c := range r.Admin().Status().Controllers {
			for _, g := range c.Revisions {
				if c.Name == "controller" && g.State == "loading" && strings.Contains(g.Reason, "Gadget") {
					return true
				}
			}
		}
		return false
	})
	if !managedController.Running() {
		t.Error("it is not there while it waits")
	}
	if _, err := managedController.Swap(t.Context(), Bytes(enginetest.Worse(enginetest.Good, 2)), SwapOptions{}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the module that waited is live")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestRuntime_OneThatNeverBeginsIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newIdle(t).Ensure("late", nil)
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() { started <- c.Started(t.Context()) }()
		synctest.Wait()
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-started; !errors.Is(err, ErrStopping) {
			t.Errorf("started with %v", err)
		}
	})
}
