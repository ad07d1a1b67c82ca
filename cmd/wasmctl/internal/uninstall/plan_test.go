// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
)

// everything is a whole installation with two Reconcilers.
func everything() *State {
	s := &State{Available: true}
	for _, r := range resources {
		s.Objects = append(s.Objects, Object{r.gvr, abi.Key{Name: "w"}})
	}
	for _, kind := range []string{v1alpha1.KindNamespaced, v1alpha1.KindCluster} {
		s.CRDs = append(s.CRDs, Object{crds, abi.Key{Name: kind}})
		s.Reconcilers = append(s.Reconcilers, Reconciler{Object: Object{v1alpha1.GVR(kind), abi.Key{Name: "r"}}})
	}
	return s
}

// describe returns the steps as text: an action with the resources of its objects.
func describe(steps []Step) string {
	var lines []string
	for _, step := range steps {
		line := map[Action]string{DeleteReconcilers: "finalize", DeleteWorkloads: "stop", Release: "release", Delete: "delete"}[step.Action]
		for _, o := range step.Objects {
			line += " " + o.GVR.Resource
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

const (
	webhooks  = "; delete validatingwebhookconfigurations mutatingwebhookconfigurations"
	workloads = " deployments horizontalpodautoscalers poddisruptionbudgets podmonitors servicemonitors services configmaps networkpolicies"
	allRights = "delete flowschemas rolebindings roles clusterrolebindings clusterroles serviceaccounts"
	kinds     = "delete customresourcedefinitions customresourcedefinitions"
	both      = " reconcilers clusterreconcilers"
)

func TestPlan_Order(t *testing.T) {
	for name, c := range map[string]struct {
		force  bool
		change func(s *State)
		want   string
	}{
		"everything":    {false, func(*State) {}, "finalize" + both + "; stop" + workloads + webhooks + "; release" + both + "; " + allRights + "; " + kinds},
		"force":         {true, func(*State) {}, "stop" + workloads + webhooks + "; release" + both + "; " + allRights + "; " + kinds},
		"nothing":       {false, func(s *State) { *s = State{} }, ""},
		"CRDs are left": {false, func(s *State) { s.Objects, s.Reconcilers = nil, nil }, kinds},
		"Reconcilers are left": {
			false, func(s *State) { s.Objects = nil }, "finalize" + both + "; release" + both + "; " + kinds,
		},
		"others serve":      {false, func(s *State) { s.Others = []string{"a/b"} }, "stop" + workloads + webhooks + "; " + allRights},
		"of a file":         {false, func(s *State) { s.Runs = true }, "stop" + workloads + webhooks + "; " + allRights},
		"no process, force": {true, func(s *State) { s.Objects = s.of(right) }, "release" + both + "; " + allRights + "; " + kinds},
	} {
		s := everything()
		c.change(s)
		if got := describe(s.Plan(c.force)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// For any part of an installation: each object is in one step; the process keeps its rights until it has stopped; no CRD is deleted while
// a Reconciler may have a finalizer; no object is released while the API server calls a process that has stopped; and an installation that shares the CRDs leaves them alone.
func TestPlan_IsSafeFromAnyState(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		s := everything()
		some := func(Object) bool { return rnd.IntN(3) == 0 }
		s.Objects, s.CRDs = slices.DeleteFunc(s.Objects, some), slices.DeleteFunc(s.CRDs, some)
		s.Reconcilers = slices.DeleteFunc(s.Reconcilers, func(Reconciler) bool { return rnd.IntN(3) == 0 })
		s.Runs, s.Available = rnd.IntN(8) == 0, rnd.IntN(2) == 0
		if rnd.IntN(8) == 0 {
			s.Others = []string{"a/b"}
		}
		force := rnd.IntN(2) == 0
		at := map[string]int{} // the last step of each resource
		deleted := map[Object]int{}
		for i, step := range s.Plan(force) {
			if len(step.Objects) == 0 {
				t.Fatalf("seed %d: step %d is empty", seed, i)
			}
			for _, o := range step.Objects {
				if step.Action != Release {
					deleted[o]++
				}
				at[fmt.Sprint(step.Action == Release, o.GVR.Resource)] = i
			}
		}
		for _, o := range s.Objects {
			if deleted[o] != 1 {
				t.Fatalf("seed %d: %v is deleted %d times", seed, o, deleted[o])
			}
		}
		stop, released, kinds := at["falsedeployments"], at["truereconcilers"], at["falsecustomresourcedefinitions"]
		if right := at["falseclusterroles"]; right > 0 && (stop > right || released > right) || kinds > 0 && (released > kinds || right > kinds) {
			t.Fatalf("seed %d: %s", seed, describe(s.Plan(force)))
		}
		if hooks := at["falsevalidatingwebhookconfigurations"]; hooks > 0 && (stop > hooks || released > 0 && hooks > released) {
			t.Fatalf("seed %d: calls of a stopped process: %s", seed, describe(s.Plan(force)))
		}
		if shared := len(s.Others) > 0 || s.Runs; shared && (kinds > 0 || at["falsereconcilers"] > 0 || released > 0) {
			t.Fatalf("seed %d: shared: %s", seed, describe(s.Plan(force)))
		}
	}
}

// TestMisnamed_ProtectsReconcilersInUse: a wrong name, or namespace, must not delete the Reconcilers of an installation without our labels.
func TestMisnamed_ProtectsReconcilersInUse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *State)
		want   bool
	}{
		"everything":             {func(*State) {}, false},
		"only the Reconcilers":   {func(s *State) { s.Objects = nil }, true},
		"one is not deleted":     {func(s *State) { s.Objects, s.Reconcilers[0].Deleting = nil, true }, true},
		"all are being deleted":  {func(s *State) { s.Objects, s.Reconcilers[0].Deleting, s.Reconcilers[1].Deleting = nil, true, true }, false},
		"CRDs are left":          {func(s *State) { s.Objects, s.Reconcilers = nil, nil }, false},
		"another one needs them": {func(s *State) { s.Objects, s.Others = nil, []string{"a/b"} }, false},
	} {
		s := everything()
		c.change(s)
		if got := s.misnamed(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWorking_WaitsForAProcessWithRights(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *State)
		quiet  time.Duration
		want   bool
	}{
		"ready":                      {func(*State) {}, time.Hour, true},
		"all are gone":               {func(s *State) { s.Reconcilers = nil }, 0, false},
		"not ready, but they change": {func(s *State) { s.Available = false }, quiet - 1, true},
		"not ready":                  {func(s *State) { s.Available = false }, quiet, false},
		"without rights":             {func(s *State) { s.Objects = s.Objects[:1] }, quiet, false},
		"without rights, just now":   {func(s *State) { s.Objects = s.Objects[:1] }, 0, true},
	} {
		s := everything()
		c.change(s)
		if got := s.working(c.quiet); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestResources_AreAllThatDeployMakes: each object of each configuration has the labels, and its kind is deleted.
func TestResources_AreAllThatDeployMakes(t *testing.T) {
	crdObjects, err := v1alpha1.CRDObjects()
	if err != nil {
		t.Fatal(err)
	}
	rights := []abi.Capability{{Resource: "configmaps", Verbs: []string{"get"}}, {Resource: "pods", Verbs: []string{"get"}, Namespaces: []string{"other"}}}
	seen := map[schema.GroupVersionResource]bool{}
	for component, c := range map[string]*deploy.Config{
		deploy.ComponentServe: {CRDs: crdObjects, Shards: 8, MaxReplicas: 4, Webhooks: true, Monitors: []string{deploy.PodMonitor, deploy.ServiceMonitor}},
		deploy.ComponentRun:   {Source: deploy.FromConfigMap, Modules: map[string][]byte{"a": nil}, Replicas: 2},
	} {
		c.Name, c.Namespace, c.Rights = "w", "ns", rights
		for _, object := range c.Objects() {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if m, ok := object.(map[string]any); ok {
				fields, err = m, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{Object: fields}
			gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			if gvr == crds {
				continue
			}
			if ns, name, of := deploy.Of(o); ns != "ns" || name != "w" || of != component {
				t.Errorf("%s: %v has the labels %v", component, gvr, o.GetLabels())
			}
			seen[gvr] = true
		}
	}
	delete(seen, namespaces)
	for _, r := range resources {
		delete(seen, r.gvr)
	}
	if len(seen) > 0 {
		t.Errorf("not deleted: %v", seen)
	}
}
