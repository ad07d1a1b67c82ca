// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// counted is a native reconciler that counts its runs.
type counted struct {
	name      string
	stubborn  bool          // its runs end only by force
	hold      chan struct{} // if not nil, each run ends when it is closed
	startedAt atomic.Int32
	ended     atomic.Int32
	forced    atomic.Int32 // runs whose context ended
}

func (n *counted) native() Native {
	return Native{
		Name: n.name, For: abi.Watch{Version: "v1", Kind: "ConfigMap"},
		Reconcile: func(ctx context.Context, _ *Request) (Action, error) {
			n.startedAt.Add(1)
			defer n.ended.Add(1)
			hold := n.hold
			switch {
			case n.stubborn:
				<-ctx.Done()
			case hold != nil:
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
			if ctx.Err() != nil {
				n.forced.Add(1)
			}
			return Action{}, nil
		},
	}
}

// running is a running Runtime, on ConfigMaps in memory.
type running struct {
	*Runtime
	t     *testing.T
	api   *memapi.Server
	stop  func()
	ended chan error // receives the result of Run
}

// virtually runs a Runtime in virtual time: the bubble ends only when everything that the
// Runtime started has ended.
func virtually(t *testing.T, test func(t *testing.T, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRunning(t)
		defer r.stop()
		test(t, r)
	})
}

func newRunning(t *testing.T) *running {
	t.Helper()
	r := newIdle(t)
	r.start()
	return r
}

// newIdle returns a Runtime that does not run yet.
func newIdle(t *testing.T) *running {
	t.Helper()
	r := &running{t: t, api: memapi.New(memapi.Config{}), stop: func() {}, ended: make(chan error, 1)}
	var err error
	r.Runtime, err = New(&rest.Config{Host: "http://memory", Transport: r.api}, Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.put("o0", 1)
	return r
}

func (r *running) start() {
	ctx, stop := context.WithCancel(r.t.Context())
	r.stop = stop
	go func() { r.ended <- r.Run(ctx) }()
}

// put creates or changes an object.
func (r *running) put(name string, revision int) {
	r.t.Helper()
	err := r.api.Put(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "shop"}, "data": map[string]any{"revision": fmt.Sprint(revision)},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) add(n *counted) *Controller {
	r.t.Helper()
	c, err := r.Add(r.t.Context(), n.native(), ControllerOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *running) names() (names []string) {
	for _, c := range r.Controllers() {
		names = append(names, c.Name())
	}
	return names
}

// passes lets virtual time pass, and waits until everything that is due has happened.
func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRuntime_ControllersComeAndGoByThemselves(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a, b := &counted{name: "a"}, &counted{name: "b"}
		first, second := r.add(a), r.add(b)
		passes(time.Second)
		if a.ended.Load() != 1 || b.ended.Load() != 1 || !first.Running() || !second.Running() {
			t.Fatalf("a ran %d times, b %d times", a.ended.Load(), b.ended.Load())
		}
		if err := first.Stop(t.Context()); err != nil || first.Running() || !second.Running() {
			t.Errorf("stop: %v; a runs: %t, b runs: %t", err, first.Running(), second.Running())
		}
		<-first.Ended()
		r.put("o0", 2)
		passes(time.Second)
		if a.startedAt.Load() != 1 || b.ended.Load() != 2 {
			t.Errorf("a ran %d times, b %d times", a.startedAt.Load(), b.ended.Load())
		}
		if err := first.Stop(t.Context()); err != nil {
			t.Errorf("stopped twice: %v", err)
		}
		if _, err := first.Trigger(t.Context()); !errors.Is(err, ErrNotRunning) {
			t.Errorf("triggered when it has ended: %v", err)
		}
		again := &counted{name: "a"}
		third := r.add(again)
		passes(time.Second)
		if diff := cmp.Diff([]string{"b", "a"}, r.names()); diff != "" || again.ended.Load() != 1 || b.ended.Load() != 2 {
			t.Errorf("a ran %d times, b %d times; names (-want +got):\n%s", again.ended.Load(), b.ended.Load(), diff)
		}
		r.stop()
		if err := <-r.ended; err != nil || third.Running() || second.Running() {
			t.Errorf("stopped with %v", err)
		}
		r.put("o0", 3)
		passes(time.Second)
		if again.startedAt.Load() != 1 || b.startedAt.Load() != 2 {
			t.Errorf("after the end a ran %d times, b %d times", again.startedAt.Load(), b.startedAt.Load())
		}
		pending := &counted{name: "late"}
		if _, err := r.Add(t.Context(), pending.native(), ControllerOptions{}); !errors.Is(err, ErrStopping) {
			t.Errorf("added after the end: %v", err)
		}
		if _, err := r.Ensure("late", nil); !errors.Is(err, ErrStopping) || len(r.names()) != 0 {
			t.Errorf("added after the end: %v; there are %v", err, r.names())
		}
		if err := r.Run(t.Context()); err == nil {
			t.Error("it runs twice")
		}
	})
}

func TestRuntime_NamesAreUnique(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a := &counted{name: "a"}
		first := r.add(a)
		twin := &counted{name: "a"}
		_, err := r.Add(t.Context(), twin.native(), ControllerOptions{})
		passes(time.Second)
		if !errors.Is(err, ErrNameTaken) || twin.startedAt.Load() != 0 || len(r.names()) != 1 || a.ended.Load() != 1 {
			t.Errorf("%v; the twin ran %d times; there are %v", err, twin.startedAt.Load(), r.names())
		}
		if err := first.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		r.add(twin)
	})
}

// A controller retains its name while it restarts or waits for a retry, because its rights
// and its field manager depend on the name.
func TestRuntime_NamesAreKeptMeanwhile(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		var gone atomic.Bool
		n := (&counted{name: "a"}).native()
		first, err := r.load(t.Context(), func() (Module, ControllerOptions, error) {
			if gone.Load() {
				return nil, ControllerOptions{}, errors.New("its grant is gone")
			}
			return Bytes(nil), ControllerOptions{ControllerSpec: v1alpha1.ControllerSpec{Name: "a"}}, nil
		}, &n)
		if err != nil {
			t.Fatal(err)
		}
		gone.Store(true)
		first.Restart()
		passes(time.Second)
		twin := &counted{name: "a"}
		if _, err := r.Add(t.Context(), twin.native(), ControllerOptions{}); !errors.Is(err, ErrNameTaken) || first.Status().Phase != admin.PhaseFailed {
			t.Errorf("it is %s, and another took the name: %v", first.Status().Phase, err)
		}
	})
}

// Two controllers with the same finalizer on the same objects would each remove it before
// the other has cleaned up.
func TestRuntime_AFinalizerHasOneController(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		add := func(name, finalizer string, namespaces ...string) error {
			n := (&counted{name: name}).native()
			n.Finalizer, n.Finalize = finalizer, n.Reconcile
			_, err := r.Add(t.Context(), n, ControllerOptions{ControllerSpec: v1alpha1.ControllerSpec{Namespaces: namespaces}})
			return err
		}
		for _, c := range []struct {
			name, finalizer string
			namespaces      []string
			refused         bool
		}{
			{"a", "example.com/f", []string{"shop", "web"}, false},
			{"b", "example.com/f", []string{"web", "other"}, true},
			{"c", "example.com/f", nil, true},
			{"d", "example.com/g", []string{"web"}, false},
			{"e", "example.com/f", []string{"other"}, false},
		} {
			err := add(c.name, c.finalizer, c.namespaces...)
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "finalizer example.com/f: controller[a] sets it") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
}

// A controller that cannot start, and one that does not stop in order, do not affect the
// others. The error of a Stop is not an error of Run.
func TestRuntime_OneThatEndsDoesNotEndTheOthers(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a, b := &counted{name: "a", stubborn: true}, &counted{name: "b"}
		first := r.add(a)
		r.add(b)
		var module atomic.Pointer[[]byte]
		module.Store(new([]byte("no module")))
		broken, err := r.Ensure("broken", func() (Module, ControllerOptions, error) {
			return Bytes(*module.Load()), ControllerOptions{ControllerSpec: configmaps("broken")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := broken.Started(t.Context()); !errors.Is(err, ErrModule) || broken.Running() {
			t.Errorf("a module that does not load: %v", err)
		}
		passes(time.Second)
		if err := first.Stop(t.Context()); !errors.Is(err, ErrForced) || !strings.Contains(err.Error(), "controller[a]") || a.forced.Load() != 1 {
			t.Errorf("it did not drain in time: %v", err)
		}
		module.Store(new(enginetest.Worse(enginetest.Good, 0)))
		r.put("o0", 2)
		passes(2 * life.MaxRetry)
		if b.ended.Load() != 2 || !broken.Running() {
			t.Errorf("b ran %d times; the one that could not start runs: %t", b.ended.Load(), broken.Running())
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// A stop waits for the current runs, and starts no others. The caller of Stop may give up
// waiting.
func TestRuntime_StopDrains(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a := &counted{name: "a", hold: make(chan struct{})}
		c := r.add(a)
		passes(time.Second)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Stop(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stop that takes too long: %v", err)
		}
		r.put("o1", 1)
		stopped := make(chan error, 1)
		go func() { stopped <- c.Stop(t.Context()) }()
		passes(time.Second)
		select {
		case err := <-stopped:
			t.Errorf("stopped while a run goes on: %v", err)
		default:
		}
		close(a.hold)
		if err := <-stopped; err != nil || a.startedAt.Load() != 1 || a.ended.Load() != 1 || a.forced.Load() != 0 {
			t.Errorf("stopped with %v; %d runs began, %d ended, %d by force", err, a.startedAt.Load(), a.ended.Load(), a.forced.Load())
		}
	})
}

func TestRuntime_ForceInterruptsAll(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a, b, c := &counted{name: "a", stubborn: true}, &counted{name: "b"}, &counted{name: "c", stubborn: true}
		first, second, third := r.add(a), r.add(b), r.add(c)
		passes(time.Second)
		r.stop()
		passes(time.Second)
		if !first.Running() || second.Running() || !third.Running() {
			t.Errorf("after the stop: a and c run %t and %t, want them to; b runs %t", first.Running(), third.Running(), second.Running())
		}
		r.Interrupt()
		r.Interrupt()
		err := <-r.ended
		if !errors.Is(err, ErrForced) || !enginetest.ContainsAll(err.Error(), "controller[a]", "controller[c]") || a.forced.Load() != 1 || c.forced.Load() != 1 {
			t.Errorf("Run: %v", err)
		}
	})
}

// Interrupt alone is a stop.
func TestRuntime_ForceAloneStops(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a := &counted{name: "a", stubborn: true}
		r.add(a)
		passes(time.Second)
		r.Interrupt()
		if err := <-r.ended; !errors.Is(err, ErrForced) || a.forced.Load() != 1 {
			t.Errorf("Run: %v", err)
		}
	})
}

// Interrupt of one controller cuts its runs short, also those that a Stop waits for, and no others.
func TestRuntime_ForceInterruptsOne(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a, b := &counted{name: "a", stubborn: true}, &counted{name: "b", stubborn: true}
		first, second := r.add(a), r.add(b)
		passes(time.Second)
		stopped := make(chan error, 1)
		go func() { stopped <- first.Stop(t.Context()) }()
		passes(time.Second)
		first.Interrupt()
		if err := <-stopped; !errors.Is(err, ErrForced) || a.forced.Load() != 1 {
			t.Errorf("Stop: %v", err)
		}
		if passes(time.Second); !second.Running() {
			t.Error("the other controller does not run")
		}
		second.Interrupt()
		if err := second.Stop(t.Context()); !errors.Is(err, ErrForced) || b.forced.Load() != 1 {
			t.Errorf("Interrupt without a Stop: %v", err)
		}
	})
}

// A controller that is still being loaded when Run begins is started once; if Run ends in
// the meantime, or the controller is stopped, nothing remains of it.
func TestRuntime_LoadGoesOnMeanwhile(t *testing.T) {
	for what, c := range map[string]struct {
		idle      bool // Run has not begun
		meanwhile func(r *running) error
		want      error
	}{
		"Run begins":    {true, func(r *running) error { r.start(); return nil }, nil},
		"Run ends":      {false, func(r *running) error { r.stop(); return <-r.ended }, ErrStopping},
		"it is stopped": {false, func(r *running) error { return r.Controllers()[0].Stop(r.t.Context()) }, ErrStopping},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newIdle(t)
			if !c.idle {
				r.start()
			}
			defer func() { r.stop() }()
			m := slowModule{make(chan struct{}), make(chan struct{})}
			loaded := make(chan error, 1)
			go func() {
				_, err := r.Load(t.Context(), m, ControllerOptions{ControllerSpec: configmaps("slow")})
				loaded <- err
			}()
			<-m.read
			if err := c.meanwhile(r); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			synctest.Wait()
			close(m.release)
			if err := <-loaded; !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			passes(time.Second)
			list := r.Controllers()
			if c.want == nil && (len(list) != 1 || !list[0].Running()) || c.want != nil && len(list) > 0 {
				t.Errorf("%s: there are %v", what, r.names())
			}
		})
	}
}

// slowModule is read once, when release is closed; read is closed when a reader waits for
// it.
type slowModule struct{ read, release chan struct{} }

func (m slowModule) Read(context.Context) ([]byte, error) {
	close(m.read)
	<-m.release
	return enginetest.Worse(enginetest.Good, 0), nil
}

func (m slowModule) String() string { return "slow.wasm" }

// Several goroutines add and stop controllers at random: each added controller ends, and
// Run returns without any controller or identity left.
func TestRuntime_HammerLeavesNothingBehind(t *testing.T) {
	r := newRunning(t)
	var mu sync.Mutex
	var all []*Controller
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				n := &counted{name: fmt.Sprint(rand.IntN(8))}
				c, err := r.Add(t.Context(), n.native(), ControllerOptions{ControllerSpec: v1alpha1.ControllerSpec{HostSpec: v1alpha1.HostSpec{As: []string{"", "a", "b"}[rand.IntN(3)]}}})
				if err != nil {
					if !errors.Is(err, ErrNameTaken) {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				all = append(all, c)
				c = all[rand.IntN(len(all))]
				mu.Unlock()
				if rand.IntN(2) == 0 {
					if err := c.Stop(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	if i := slices.IndexFunc(all, func(c *Controller) bool { return c.Running() || !isOpen(c.Ended()) }); i >= 0 {
		t.Errorf("controller %d of %d runs: %t", i, len(all), all[i].Running())
	}
	if names := r.names(); len(names) != 0 || r.users.Others() != 0 {
		t.Errorf("left: %v, and %d identities", names, r.users.Others())
	}
}

// Outside of a cluster and without a Lease, events about a controller as a whole refer to
// the namespace that it watches.
func TestRuntime_EventsAreWhereAUserLooks(t *testing.T) {
	rt, err := New(&rest.Config{Host: "http://memory"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := rt.eventsAbout([]string{"shop", "b"}); got.Kind != "Namespace" || got.Name != "shop" {
		t.Errorf("about %s %s", got.Kind, got.Name)
	}
	rt.opts.Election = &Election{Namespace: "system", Name: "lease"}
	if got := rt.eventsAbout([]string{"shop"}); got.Kind != "Lease" || got.Namespace != "system" || got.Name != "lease" {
		t.Errorf("about %s %s/%s", got.Kind, got.Namespace, got.Name)
	}
}
