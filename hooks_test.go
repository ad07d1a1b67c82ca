// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// hooked reconciles ConfigMaps only if their text changes, or if a Secret names them. The first
// call of Map panics.
func hooked(n *counted) Native {
	native := n.native()
	native.For.Predicates = []string{"func"}
	native.Watches = []abi.Watch{{Version: "v1", Kind: "Secret", Map: "func"}}
	failed := false
	native.Filter = func(_ context.Context, e *Event) (bool, error) {
		var before, after corev1.ConfigMap
		had, err := e.DecodeOld(&before)
		if err != nil {
			return false, err
		}
		exists, err := e.DecodeNew(&after)
		return !had || !exists || before.Data["text"] != after.Data["text"], err
	}
	native.Map = func(_ context.Context, e *Event) ([]abi.Key, error) {
		if !failed {
			failed = true
			panic("the first call")
		}
		if e.Kind != "Secret" {
			return nil, errors.New("not a Secret")
		}
		var s corev1.Secret
		if _, err := e.DecodeNew(&s); err != nil {
			return nil, err
		}
		return []abi.Key{{Name: s.Labels["for"]}}, nil // of the same namespace
	}
	return native
}

func TestNative_MapAndFilter(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		a := &counted{name: "a"}
		if _, err := r.Add(t.Context(), hooked(a), ControllerOptions{}); err != nil {
			t.Fatal(err)
		}
		runs := func(want int32, what string) {
			t.Helper()
			passes(time.Minute)
			if got := a.ended.Swap(0); got != want {
				t.Errorf("%s: %d runs, want %d", what, got, want)
			}
		}
		runs(1, "at the start")
		r.putObject("shop", "a", "front", "x")
		runs(1, "a new object")
		r.putObject("shop", "a", "front", "y")
		runs(1, "a text")
		r.putObject("shop", "a", "back", "y")
		runs(0, "a label, which is filtered")
		err := r.api.Put(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "shop", "labels": map[string]any{"for": "a"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		runs(1, "a Secret that is mapped, at the second attempt")
	})
}

// A watch that asks for a function that the reconciler does not have is an error of its author.
func TestNative_FunctionsOfWatchesMustBeThere(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		for missing, without := range map[string]func(*Native){
			"filter": func(n *Native) { n.Filter = nil }, "map: func": func(n *Native) { n.Map = nil },
		} {
			n := hooked(&counted{name: "a"})
			without(&n)
			_, err := r.Add(t.Context(), n, ControllerOptions{})
			if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), missing) {
				t.Errorf("without %s: %v", missing, err)
			}
		}
	})
}
