// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// guest is a Module that consists of two functions; a nil function is a bug of the test.
type guest struct {
	mapFunc    func(ctx context.Context, ev *abi.Event) ([]abi.Key, error)
	filterFunc func(ctx context.Context, ev *abi.Event) (bool, error)
}

func (g guest) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) { return g.mapFunc(ctx, ev) }

func (g guest) Filter(ctx context.Context, ev *abi.Event) (bool, error) { return g.filterFunc(ctx, ev) }

// target maps an object to one called t-NAME.
func target(_ context.Context, ev *abi.Event) ([]abi.Key, error) {
	return []abi.Key{{Namespace: ev.Key.Namespace, Name: "t-" + ev.Key.Name}}, nil
}

// hook is a Hook that runs until the test ends, with the requests that it emitted.
type hook struct {
	*queue.Hook
	mu      sync.Mutex
	emitted []queue.Request // guarded by mu
}

func (h *hook) emit(_ context.Context, requests []queue.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.emitted = append(h.emitted, requests...)
}

// refs returns the emitted references, in order.
func (h *hook) refs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var refs []string
	for _, r := range h.emitted {
		refs = append(refs, r.Ref.String())
	}
	return refs
}

func newHook(t testing.TB, cfg queue.HookConfig) *hook {
	t.Helper()
	h := &hook{}
	if cfg.Emit == nil {
		cfg.Emit = h.emit
	}
	var err error
	if h.Hook, err = queue.NewHook(cfg); err != nil {
		t.Fatal(err)
	}
	return h
}

// start runs the hook; stop ends it, and returns when it has ended.
func (h *hook) start(t testing.TB) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// version is a state of one object.
func version(t testing.TB, name string, n int) *reflector.Object {
	t.Helper()
	o, err := reflector.Pack(map[string]any{"metadata": map[string]any{
		"name": name, "namespace": "ns", "uid": "u", "resourceVersion": fmt.Sprint(n),
	}}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func applied(t testing.TB, name string, n int) reflector.Event {
	t.Helper()
	ev := reflector.Event{Type: reflector.Applied, New: version(t, name, n)}
	if n > 1 {
		ev.Old = version(t, name, n-1)
	}
	return ev
}

func isOpen(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return false
	default:
		return true
	}
}

// sleep advances virtual time.
func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

// settle is like sleep, for the goroutine of the test: the effects so far can then be read.
func settle(d time.Duration) {
	sleep(d)
	synctest.Wait()
}

// state returns the resourceVersion of an object's msgpack.
func state(t testing.TB, msgpack []byte) string {
	if msgpack == nil {
		return ""
	}
	o, err := abi.DecodeObject(msgpack)
	if err != nil {
		t.Error(err)
		return ""
	}
	return o["metadata"].(map[string]any)["resourceVersion"].(string)
}
