package kubeapi

import (
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
