// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

func TestEqual_ComparesWhatTheAPIServerSees(t *testing.T) {
	type spec struct {
		Replicas int    `json:"replicas,omitempty"`
		Name     string `json:"name,omitempty"`
	}
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{[]any{"x", "long"}, []any{"x", "a"}, false},
		{[]any{"x", "a"}, []any{"x", "a"}, true},
		{map[string]any{"k": []any{"x", 1}}, map[string]any{"k": []any{"x", 2}}, false},
		{map[string]any{"b": 1, "a": int64(2)}, map[string]any{"a": 2, "b": 1}, true},
		{wasmctl.Map{"spec": spec{Replicas: 2}}, map[string]any{"spec": map[string]any{"replicas": int64(2)}}, true},
		{[]string{"a"}, []any{"a"}, true},
		{spec{}, map[string]any{}, true},
		{nil, map[string]any{}, false},
		{func() {}, func() {}, false},
		{1, make(chan int), false},
	} {
		if got := wasmctl.Equal(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
