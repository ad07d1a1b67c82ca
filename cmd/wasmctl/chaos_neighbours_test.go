package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// neighbours are two controllers of one process, on the same objects.
type neighbours struct {
	t       *testing.T
	p       *process
	ns      string
	client  dynamic.Interface
	witness *witness // of the good one
	stop    context.CancelFunc
	ended   chan error
	good    *session
	bad     *session
}

// newNeighbours runs configmapgenerator, which makes a ConfigMap for each
// generator, beside the guest modes.wasm, which is told by around how to
// misbehave. They have four workers together.
func newNeighbours(t *testing.T, around func(applier.Module) applier.Module) *neighbours {
	t.Helper()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../examples/configmapgenerator/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	n := &neighbours{t: t, ns: devclustertest.Namespace(t, cluster), client: client, witness: &witness{busy: map[abi.Key]bool{}}, ended: make(chan error, 1)}
	log := slog.New(slog.DiscardHandler)
	n.p = &process{opts: &processOptions{kubeconfig: cluster.Kubeconfig(), workers: 4, socket: "none", cacheDir: compiledModules}, log: log}
	ctx, stop := context.WithCancel(t.Context())
	n.stop = stop
	if err := n.p.connect(ctx); err != nil {
		t.Fatal(err)
	}
	n.bad = n.load(ctx, guests+"modes.wasm", "bad")
	n.bad.guests = around(n.bad.guests)
	n.good = n.load(ctx, exampleWasm(t, "configmapgenerator"), "good")
	n.witness.Module, n.good.guests = n.good.guests, n.witness
	go func() { n.ended <- n.p.run(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		_ = n.p.close() // both modules; what they say is not what is tested
	})
	return n
}

func (n *neighbours) load(ctx context.Context, module, name string) *session {
	n.t.Helper()
	wasm, err := os.ReadFile(module)
	if err != nil {
		n.t.Fatal(err)
	}
	s := &session{process: n.p, log: n.p.log, opts: &controllerOptions{
		module: module, name: name, forKind: "configmapgenerators.examples.wasmctl.dev", namespaces: []string{n.ns}, concurrency: 4,
		rights: rightsOptions{grantManifest: true},
	}}
	if err := s.load(ctx, wasm); err != nil {
		n.t.Fatal(err)
	}
	n.p.want(s.opts).loaded = s
	return s
}

func (n *neighbours) create(from, to int) {
	n.t.Helper()
	for i := from; i < to; i++ {
		createMode(n.t, n.client, n.ns, fmt.Sprintf("g%d", i), content(i))
	}
}

// confirm waits until the good one has made each ConfigMap.
func (n *neighbours) confirm(count int) {
	n.t.Helper()
	until(n.t, fmt.Sprintf("%d ConfigMaps", count), func() bool {
		list, err := n.client.Resource(configMaps).Namespace(n.ns).List(n.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		return err == nil && len(list.Items) == count
	})
}

// finish stops both, and checks rule 1 for the good one.
func (n *neighbours) finish() {
	n.t.Helper()
	n.stop()
	if err := <-n.ended; err != nil {
		n.t.Errorf("run: %v", err)
	}
	n.witness.mu.Lock()
	defer n.witness.mu.Unlock()
	if len(n.witness.twice) > 0 {
		n.t.Errorf("rule 1: reconciled twice at once: %v", n.witness.twice)
	}
}

// hanging is a module whose reconciles hang until they are let go.
type hanging struct {
	applier.Module
	begun, done atomic.Int64
	let         chan struct{}
}

type hangingGuest struct {
	abi.Guest
	h *hanging
}

func (h *hanging) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := h.Module.Acquire(ctx)
	return &hangingGuest{g, h}, release, err
}

func (g *hangingGuest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	g.h.begun.Add(1)
	defer g.h.done.Add(1)
	select {
	case <-g.h.let:
	case <-ctx.Done():
	}
	return g.Guest.Reconcile(ctx, req)
}

// TestNeighbours_OneThatHangs: rule 16: while every reconcile of one controller
// hangs, and it has taken what it can of the workers that both share, the other
// does all its work.
func TestNeighbours_OneThatHangs(t *testing.T) {
	t.Parallel()
	h := &hanging{let: make(chan struct{})}
	n := newNeighbours(t, func(m applier.Module) applier.Module {
		h.Module = m
		return h
	})
	const count = 40
	n.create(0, count/2)
	until(t, "the bad one hangs", func() bool { return h.begun.Load() > 0 })
	n.create(count/2, count)
	n.confirm(count)
	if done, running := h.done.Load(), n.bad.controller.Stats().Running; done != 0 || running == 0 {
		t.Errorf("the bad one has done %d and runs %d, so that nothing was shown", done, running)
	}
	if got := n.bad.controller.Stats().Ready; got == 0 {
		t.Error("nothing waits for the bad one")
	}
	// One watch of the generators for both, and one of the ConfigMaps.
	if states := n.p.watches.States(); len(states) != 2 {
		t.Errorf("%d watches, want 2: %v", len(states), states)
	}
	close(h.let)
	until(t, "the bad one goes on", func() bool { return h.done.Load() >= count })
	n.finish()
}

// told is the module modes.wasm with one mode for all objects.
type told struct {
	applier.Module
	mode byte
}

type toldGuest struct {
	abi.Guest
	mode byte
}

func (m *told) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := m.Module.Acquire(ctx)
	return &toldGuest{g, m.mode}, release, err
}

func (g *toldGuest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	changed := *req
	changed.Object = []byte{0x81, 0xa1, 'm', g.mode} // {"m": mode}
	return g.Guest.Reconcile(ctx, &changed)
}

// TestNeighbours_OneThatTrapsOrFloods: rule 17: a controller whose every run
// traps, or asks to be run again at once, keeps nobody else from a worker, and
// no failure of it is one of its neighbour.
func TestNeighbours_OneThatTrapsOrFloods(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]byte{"traps": 1, "floods": 11} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbours(t, func(m applier.Module) applier.Module { return &told{m, mode} })
			const count = 40
			n.create(0, count)
			n.confirm(count)
			bad := n.bad.controller.Stats()
			if mode == 1 && bad.Failures[abi.FailureTrap] == 0 {
				t.Errorf("no traps: %v", bad.Failures)
			}
			// Not for ever: what traps again and again is quarantined.
			until(t, "the bad one goes on", func() bool { return n.bad.controller.Stats().Started >= 2*count })
			good := n.good.controller.Stats()
			for kind, failed := range good.Failures {
				if failed > 0 {
					t.Errorf("the good one failed %d times: %s", failed, kind)
				}
			}
			t.Logf("for %d objects: %d runs of the good one, %d of the bad one", count, good.Started, bad.Started)
			n.finish()
		})
	}
}
