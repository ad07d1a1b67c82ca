// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// gate is a Gate. Its Context is the current period.
type gate struct{ context.Context }

// Period implements Gate.
func (g *gate) Period() context.Context { return g.Context }

// TestGate_ClosedItRefusesEveryWrite until it opens again, and no read.
func TestGate_ClosedItRefusesEveryWrite(t *testing.T) {
	d := newDeclarer(t)
	open, closeGate := context.WithCancel(t.Context())
	gate := &gate{open}
	d.cfg.Gate = gate
	d.declare(d.result(configMap("a", "1")))
	closeGate()
	d.sent()
	const closed = "no valid lease"
	d.fails(abi.StatusCancelled, closed, abi.OpAPICreate, map[string]any{"object": d.cm("b", nil)})
	d.fails(abi.StatusCancelled, closed, abi.OpAPIUpdate, map[string]any{"object": d.cm("a", nil)})
	d.fails(abi.StatusCancelled, closed, abi.OpAPIApply, map[string]any{"object": d.cm("a", nil)})
	d.fails(abi.StatusCancelled, closed, abi.OpAPIPatch, with(d.ref("a"), "patchType", "merge", "patch", map[string]any{}))
	d.fails(abi.StatusCancelled, closed, abi.OpAPIDelete, d.ref("a"))
	d.refuse(abi.ErrorTransient, "Cancelled", closed, d.result(configMap("a", "2")))
	d.refuse(abi.ErrorTransient, "Cancelled", closed, &abi.Declared{Prune: true})
	d.refuse(abi.ErrorTransient, "Cancelled", closed, &abi.Declared{Status: msg(t, map[string]any{})})
	_, err := d.AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, finalizer)
	failsAs(t, err, abi.ErrorTransient, "Cancelled", closed)
	if sent := d.sent(); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
	if d.names() != "a" {
		t.Errorf("objects: %s", d.names())
	}
	gate.Context = t.Context()
	d.declare(d.result(configMap("a", "2")))
}

// TestGate_InterruptsWritesThatAreUnderWay, and reads not.
func TestGate_InterruptsWritesThatAreUnderWay(t *testing.T) {
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		if r.Method == http.MethodGet {
			<-release
			answer("application/json", 200, `{"kind":"ConfigMap"}`)(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then is the client's end noticed
		<-r.Context().Done()               // the write hangs until the client gives up
	})
	open, closeGate := context.WithCancel(t.Context())
	api.cfg.Gate = &gate{open}
	var write, read abi.Response
	var reported atomic.Int32
	ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(abi.Write) { reported.Add(1) }})
	var wg sync.WaitGroup
	wg.Go(func() {
		write = api.Call(ctx, abi.OpAPIApply, msg(t, map[string]any{"object": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"},
		}}))
	})
	wg.Go(func() {
		read = api.Call(ctx, abi.OpAPIGet, msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "a"}))
	})
	<-arrived
	<-arrived
	closeGate()
	close(release)
	wg.Wait()
	message := statusBody(t, write)["message"].(string)
	if write.Status != abi.StatusCancelled || !strings.Contains(message, "no valid lease") || !strings.Contains(message, "may have taken effect") {
		t.Errorf("write: %v: %s", write.Status, message)
	}
	if read.Status != abi.StatusOK || reported.Load() != 0 {
		t.Errorf("read: %v, told of %d writes", read.Status, reported.Load())
	}
}

// TestGate_OpenItIsNotLeftBehind: what waits for the gate ends with each write.
func TestGate_OpenItIsNotLeftBehind(t *testing.T) {
	period, cancel := context.WithCancel(t.Context())
	defer cancel()
	gate := &gate{period}
	allocated := testing.AllocsPerRun(100, func() {
		_, done, err := enter(t.Context(), gate)
		if err != nil {
			t.Fatal(err)
		}
		done()
	})
	open, done, err := enter(t.Context(), gate)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if open.Err() == nil {
		t.Error("the context of a write outlives the write")
	}
	if allocated > 12 {
		t.Errorf("%v allocations a write", allocated)
	}
}
