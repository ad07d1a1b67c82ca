// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// Two policies over one API: each decides for its own calls, and both keep and
// count together.
func TestWithPolicy_EachDecidesForItself(t *testing.T) {
	denied := offlineAPI(t, nil)
	allowed := denied.WithPolicy(everything())
	req := msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "odd": 1})
	if got := denied.Call(t.Context(), abi.OpAPIGet, req); got.Status != abi.StatusDenied {
		t.Errorf("without rights: %v", got.Status)
	}
	if got := allowed.Call(t.Context(), abi.OpAPIGet, req); got.Status != abi.StatusUnavailable {
		t.Errorf("with rights: %v, want that nobody answers", got.Status)
	}
	if denied.UnknownKeys() != 2 || allowed.UnknownKeys() != 2 {
		t.Errorf("unknown keys: %d and %d, want 2 in both", denied.UnknownKeys(), allowed.UnknownKeys())
	}
}

// Admits returns the answer of Call for refused operations, and sends nothing for the others, even
// if the API server is unreachable.
func TestAdmits_AnswersAsCallDoes(t *testing.T) {
	denied := offlineAPI(t, nil)
	allowed := denied.WithPolicy(everything())
	req := msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"})
	for name, c := range map[string]struct {
		api  *API
		op   abi.Op
		req  []byte
		want abi.Status
	}{
		"denied": {denied, abi.OpAPIGet, req, abi.StatusDenied}, "allowed": {allowed, abi.OpAPIGet, req, abi.StatusOK},
		"nonsense": {allowed, abi.OpAPIDelete, []byte{1}, abi.StatusBadRequest}, "no cache": {allowed, abi.OpCacheGet, req, abi.StatusUnsupported},
	} {
		answer, ok := c.api.Admits(t.Context(), c.op, c.req)
		if ok != (c.want == abi.StatusOK) || answer.Status != c.want {
			t.Errorf("%s: %v, %v; want %v", name, ok, answer.Status, c.want)
		}
		if called := c.api.Call(t.Context(), c.op, c.req); !ok && called.Status != answer.Status {
			t.Errorf("%s: Call answers %v", name, called.Status)
		}
	}
}

// WithObserver notifies another observer, or none, and does not change the original API.
func TestWithObserver_TellsAnother(t *testing.T) {
	var first, second int
	api := offlineAPI(t, nil)
	api.cfg.Observer = func(context.Context, *Exchange) { first++ }
	req := msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"})
	for _, a := range []*API{api, api.WithObserver(func(context.Context, *Exchange) { second++ }), api.WithObserver(nil)} {
		a.Call(t.Context(), abi.OpAPIGet, req)
	}
	if first != 1 || second != 1 {
		t.Errorf("told %d and %d times, want once each", first, second)
	}
}
