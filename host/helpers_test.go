// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// load loads a module that is closed with the test.
func loaded(tb testing.TB, wasm []byte, cfg Config) *Module {
	tb.Helper()
	m, err := Load(tb.Context(), wasm, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// acquire acquires a guest that is released with the test.
func acquire(tb testing.TB, m *Module) *lease {
	tb.Helper()
	g, release, err := m.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(release)
	return g.(*lease)
}

// hurry bounds the calls of a module from now on. As a limit of its Config the same
// time would bound its start too, which takes longer than that on a busy machine.
func hurry(m *Module, timeout time.Duration) { m.last.Load().spec.Limits.Timeout = timeout }

// request is a request whose object is one byte, the mode of some guests.
func request(mode byte) *abi.Request {
	return &abi.Request{
		ID: "r1", Controller: "test", Attempt: 1, Reason: abi.Reason{Type: abi.ReasonListed},
		Key: abi.Key{Namespace: "default", Name: "web"}, Object: []byte{mode},
	}
}

// callError is the *abi.CallError in err; the test ends where there is none.
func callError(tb testing.TB, err error) *abi.CallError {
	tb.Helper()
	var ce *abi.CallError
	if !errors.As(err, &ce) {
		tb.Fatalf("got error %v, want a CallError", err)
	}
	return ce
}

// scriptedAPI answers what its function says and notes what it was asked.
type scriptedAPI struct {
	mu    sync.Mutex
	calls []apiCall // guarded by mu
	f     func(ctx context.Context, op abi.Op, req []byte) abi.Response
}

type apiCall struct {
	op  abi.Op
	req []byte
}

func (a *scriptedAPI) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	a.mu.Lock()
	a.calls = append(a.calls, apiCall{op, req})
	a.mu.Unlock()
	if a.f == nil {
		return abi.Response{}
	}
	return a.f(ctx, op, req)
}

func apiOf(a *scriptedAPI) func(*abi.Manifest) (operation.API, error) {
	if a == nil {
		a = &scriptedAPI{}
	}
	return func(*abi.Manifest) (operation.API, error) { return a, nil }
}

// encoded is a value as msgpack.
func encoded(v any) []byte {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic(err)
	}
	return b
}
