// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// TestParseServed_TakesTheFormsOfKubectl.
func TestParseServed_TakesTheFormsOfKubectl(t *testing.T) {
	for line, want := range map[string][]servedName{
		"reconciler/a":                     {{v1alpha1.KindNamespaced, "a"}},
		"rec/a crec/b":                     {{v1alpha1.KindNamespaced, "a"}, {v1alpha1.KindCluster, "b"}},
		"Reconcilers.wasmctl.dev/a":        {{v1alpha1.KindNamespaced, "a"}},
		"clusterreconciler a b":            {{v1alpha1.KindCluster, "a"}, {v1alpha1.KindCluster, "b"}},
		"":                                 nil,
		"a":                                nil,
		"reconciler":                       nil,
		"reconciler/":                      nil,
		"reconciler/a/b":                   nil,
		"shop/a":                           nil,
		"reconciler/a b":                   nil,
		"reconciler a/b":                   nil,
		"reconcilers.example.dev/a":        nil,
		"reconciler/a clusterreconciler/b": {{v1alpha1.KindNamespaced, "a"}, {v1alpha1.KindCluster, "b"}},
	} {
		if got, ok := parseServed(strings.Fields(line)); ok != (want != nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", line, got, ok, want)
		}
	}
}

// TestReaction_WaitsForTheAnswer: an old status is no answer, and neither is a rollout in progress.
func TestReaction_WaitsForTheAnswer(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "m"}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for name, c := range map[string]struct {
		observed   int64
		handled    string
		suspend    bool
		deleting   bool
		conditions []metav1.Condition
		done       bool
		state, err string
	}{
		"an older generation": {observed: 1, handled: "now", conditions: []metav1.Condition{condition("Ready", yes, "Succeeded")}, state: "waits for wasmctl serve"},
		"an older request":    {observed: 2, handled: "then", conditions: []metav1.Condition{condition("Ready", yes, "Succeeded")}, state: "waits for wasmctl serve"},
		"no condition":        {observed: 2, handled: "now", state: "has no condition yet"},
		"a probation":         {observed: 2, handled: "now", conditions: []metav1.Condition{condition("Ready", no, "Probation")}, state: "Probation: m"},
		"ready":               {observed: 3, handled: "now", conditions: []metav1.Condition{condition("Ready", yes, "Succeeded")}, done: true, state: "Succeeded: m"},
		"refused":             {observed: 2, handled: "now", conditions: []metav1.Condition{condition("Ready", no, "RolledBack"), condition("Stalled", yes, "RolledBack")}, state: "RolledBack: m", err: "RolledBack: m"},
		"being deleted":       {observed: 1, deleting: true, err: "is being deleted"},
		"stopping":            {observed: 2, handled: "now", suspend: true, conditions: []metav1.Condition{condition("Ready", no, "Stopping")}, state: "Stopping: m"},
		"suspended":           {observed: 2, handled: "now", suspend: true, conditions: []metav1.Condition{condition("Ready", no, "Suspended")}, done: true, state: "Suspended: m"},
	} {
		o := &v1alpha1.Reconciler{}
		o.Spec.Suspend = c.suspend
		if c.deleting {
			o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		o.Status = v1alpha1.Status{ObservedGeneration: c.observed, LastHandledReconcileAt: c.handled, Conditions: c.conditions}
		done, state, err := reaction(o, 2, "now")
		text := ""
		if err != nil {
			text = err.Error()
		}
		if done != c.done || state != c.state || text != c.err {
			t.Errorf("%s: %v, %q, %q", name, done, state, text)
		}
	}
}

// TestReconcilers_AreSteeredInTheCluster: suspend, resume, reconcile and history work on the object.
func TestReconcilers_AreSteeredInTheCluster(t *testing.T) {
	var kinds []memapi.Kind
	for _, kind := range []string{v1alpha1.KindNamespaced, v1alpha1.KindCluster} {
		kinds = append(kinds, memapi.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: kind},
			Resource:         v1alpha1.GVR(kind).Resource, Namespaced: kind == v1alpha1.KindNamespaced, Status: true,
		})
	}
	api := memapi.New(memapi.Config{Kinds: kinds})
	kubeconfig := kubeconfigOf(t, api)
	object := map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": v1alpha1.KindNamespaced, "metadata": map[string]any{"name": "site", "namespace": "t01"},
		"spec": map[string]any{}, "status": map[string]any{
			"live":    map[string]any{"digest": "sha256:bb", "version": "1.1.0", "since": "2026-01-02T00:00:00Z", "generation": int64(2)},
			"history": []any{map[string]any{"digest": "sha256:aa", "version": "1.0.0", "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "reason": "Replaced"}},
		},
	}
	if err := api.Put(object); err != nil {
		t.Fatal(err)
	}
	run := func(line, want string) {
		t.Helper()
		if got := says(t, line, "--kubeconfig", kubeconfig); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	site := func() (suspended any, notes map[string]any) {
		o := api.Objects()[0]
		notes, _ = o["metadata"].(map[string]any)["annotations"].(map[string]any)
		return o["spec"].(map[string]any)["suspend"], notes
	}
	run("suspend reconciler/site", "reconciler/site suspended")
	if suspended, _ := site(); suspended != true {
		t.Error("it is not suspended")
	}
	run("reconcile rec/site -n t01", "is suspended, and does it once it is resumed: wasmctl resume reconciler/site -n t01")
	run("resume reconcilers site", "reconciler/site resumed")
	if suspended, _ := site(); suspended != false {
		t.Error("it is not resumed")
	}
	run("reconcile reconciler/site --force", "reconciler/site requested")
	if _, notes := site(); notes[v1alpha1.RequestedAt] == nil || notes[v1alpha1.ForceAt] != notes[v1alpha1.RequestedAt] {
		t.Errorf("annotations %v", notes)
	}
	run("reconcile reconciler/site --wait --timeout 10ms", "reconciler/site: not done after 10ms")
	run("suspend reconciler/none", `reconciler/none: reconcilers.wasmctl.dev "none" not found`)
	run("suspend reconciler/site -n t02", `not found in the namespace t02: name another one with -n`)
	run("suspend site", "want reconciler/NAME or clusterreconciler/NAME")
	run("suspend", "want reconciler/NAME or clusterreconciler/NAME")
	lines := strings.Split(says(t, "history reconciler/site", "--kubeconfig", kubeconfig), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[1], "live      bb      1.1.0   generation 2 of the Reconciler") || !strings.HasSuffix(lines[2], "replaced  aa      1.0.0   live until 2026-01-02T00:00:00Z") {
		t.Errorf("history:\n%s", strings.Join(lines, "\n"))
	}
}
