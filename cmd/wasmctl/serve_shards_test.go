package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// spansOf returns the times in which a replica has run the modules of Reconcilers, by name.
func spansOf(c *child) map[string][][2]time.Time {
	c.t.Helper()
	out := map[string][][2]time.Time{}
	for _, text := range c.linesWith(`"controller":"`) {
		var line struct {
			Time            time.Time
			Msg, Controller string
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			c.t.Fatal(err)
		}
		switch spans := out[line.Controller]; line.Msg {
		case "reconciling":
			out[line.Controller] = append(spans, [2]time.Time{line.Time})
		case "stopped":
			if n := len(spans); n > 0 {
				spans[n-1][1] = line.Time
			}
		}
	}
	return out
}

// TestServe_ReplicasShareReconcilers: two replicas share Reconcilers, each of which one
// of them runs at a time, with all of its objects. One that stops gives its own to the
// other; after that is killed, a third takes all over. A Reconciler that is deleted
// goes. So it is whether the API server selects by shards or the replicas do.
func TestServe_ReplicasShareReconcilers(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"server": {"--feature-gates=ShardedListAndWatch=true"}, "client": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shareReconcilers(t, newTenantOn(t, devclustertest.Own(t, flags...)))
		})
	}
}

func shareReconcilers(t *testing.T, tn *tenant) {
	t.Helper()
	module := tn.module("good", enginetest.Worse(enginetest.Good, 1))
	var names []string
	for i := range 8 {
		name := fmt.Sprintf("r%d", i)
		names = append(names, tn.ns+"."+name)
		tn.create(name, map[string]any{
			"module": module, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
			"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
		})
	}
	args := []string{
		"--shards", "16", "--leader-elect-resource-namespace", tn.ns,
		"--leader-elect-lease-duration", "6s", "--leader-elect-renew-deadline", "4s", "--leader-elect-retry-period", "500ms",
	}
	runs := func(c *child) (n int) {
		all := spansOf(c)
		for _, name := range names {
			if spans := all[name]; len(spans) > 0 && spans[len(spans)-1][1].IsZero() {
				n++
			}
		}
		return n
	}
	all := func(c *child) {
		enginetest.Until(t, "a replica runs all", func() bool { return runs(c) == len(names) })
	}
	first := startServe(tn, args...)
	all(first)
	second := startServe(tn, args...)
	enginetest.Until(t, "both run some", func() bool { return runs(first) > 0 && runs(second) > 0 && runs(first)+runs(second) == len(names) })
	first.signal(syscall.SIGTERM)
	all(second)
	first.wantExit(exitOK)
	for name, spans := range spansOf(second) {
		for _, a := range spans {
			if slices.ContainsFunc(spansOf(first)[name], func(b [2]time.Time) bool { return b[1].After(a[0]) || b[1].IsZero() }) && slices.Contains(names, name) {
				t.Errorf("%s: both replicas run it: %v and %v", name, spansOf(first)[name], spans)
			}
		}
	}
	tn.must(tn.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tn.ns).Delete(t.Context(), "r7", metav1.DeleteOptions{}))
	enginetest.Until(t, "r7 is gone", func() bool {
		_, err := tn.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tn.ns).Get(t.Context(), "r7", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	r6 := tn.ns + ".r6"
	ended := func() bool { spans := spansOf(second)[r6]; return !spans[len(spans)-1][1].IsZero() }
	_, err := tn.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tn.ns).Patch(t.Context(), "r6", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	tn.must(err)
	tn.must(tn.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tn.ns).Delete(t.Context(), "r6", metav1.DeleteOptions{}))
	enginetest.Until(t, "r6 has ended, whose finalizer somebody has removed", ended)
	names = names[:6]
	second.signal(syscall.SIGKILL)
	third := startServe(tn, args...)
	all(third)
	for i := range names {
		tn.ready(fmt.Sprintf("r%d", i), "True", "Succeeded")
	}
	third.signal(syscall.SIGTERM)
	third.wantExit(exitOK)
}
