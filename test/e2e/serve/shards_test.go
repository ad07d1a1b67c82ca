// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// spansOf returns the periods in which a replica ran the modules of Reconcilers, by
// name.
func spansOf(c *e2e.Process) map[string][][2]time.Time {
	c.T.Helper()
	out := map[string][][2]time.Time{}
	for _, text := range c.LinesWith(`"controller":"`) {
		if !strings.Contains(text, `"msg":"reconciling"`) && !strings.Contains(text, `"msg":"stopped"`) {
			continue // most lines: they are not worth decoding
		}
		var line struct {
			Time            time.Time
			Msg, Controller string
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			c.T.Fatal(err)
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

// TestServe_ReplicasShareReconcilers: two replicas share Reconcilers; each one runs on
// exactly one of them, with all of its objects. A replica that stops hands its own over
// to the other one. After that one is killed, a third takes over all of them. A deleted
// Reconciler stops. This holds if the API server selects by shards, and if the replicas
// do.
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
	for i := range 24 { // so many that both replicas get some, except once in 8 million times
		name := fmt.Sprintf("r%d", i)
		names = append(names, tn.ns+"."+name)
		tn.create(name, map[string]any{
			"module": module, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
			"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
		})
	}
	args := append([]string{"--shards", "16", "--leader-elect-resource-namespace", tn.ns}, e2e.ShortLeases...)
	runs := func(c *e2e.Process) (n int) {
		all := spansOf(c)
		for _, name := range names {
			if spans := all[name]; len(spans) > 0 && spans[len(spans)-1][1].IsZero() {
				n++
			}
		}
		return n
	}
	all := func(c *e2e.Process) {
		c.Until("a replica runs all", func() bool { return runs(c) == len(names) })
	}
	first := startServe(tn, args...)
	all(first)
	second := startServe(tn, args...)
	first.Until("both run some", func() bool { return runs(first) > 0 && runs(second) > 0 && runs(first)+runs(second) == len(names) })
	first.Signal(syscall.SIGTERM)
	all(second)
	first.WantExit(e2e.ExitOK)
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
	enginetest.Until(t, "r6 has ended after its finalizer was removed by hand", ended)
	names = names[:6]
	second.Signal(syscall.SIGKILL)
	third := startServe(tn, args...)
	all(third)
	for i := range names {
		tn.ready(fmt.Sprintf("r%d", i), "True", "Succeeded")
	}
	third.Signal(syscall.SIGTERM)
	third.WantExit(e2e.ExitOK)
}

// server is a replica of serve that shares the objects of Reconcilers.
type server struct {
	*e2e.Process
	socket string
}

// runs returns the number of runs of each object of a controller on the replica.
func (s *server) runs(controller string) map[string]int {
	s.T.Helper()
	out := map[string]int{}
	for _, text := range s.LinesWith(`"msg":"reconciled"`) {
		var line struct{ Controller, Object string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.T.Fatal(err)
		}
		if line.Controller == controller {
			out[line.Object]++
		}
	}
	return out
}

// live waits until a controller runs a module, after its probation.
func (s *server) live(controller string, module []byte) {
	s.T.Helper()
	enginetest.Until(s.T, "the module is live", func() bool {
		st, err := admin.NewClient(s.socket).Status(s.T.Context())
		return err == nil && slices.ContainsFunc(st.Controllers, func(c admin.Controller) bool {
			return c.Name == controller && c.Digest == load.DigestOf(module) &&
				slices.ContainsFunc(c.Revisions, func(r admin.Revision) bool { return r.Digest == c.Digest && r.State == "live" })
		})
	})
}

// TestServe_ReplicasShareObjects: with --share objects, each replica runs the Reconciler
// for some of its objects. All replicas swap to another module, and roll back one that
// fails for an object, and the status reports it. After a replica is killed, the other
// one runs all objects.
func TestServe_ReplicasShareObjects(t *testing.T) {
	t.Parallel()
	tn := newTenantOn(t, devclustertest.Own(t))
	const n = 24
	names := map[string]bool{}
	touch := func(value string) {
		for name := range names {
			_, err := tn.client.CoreV1().ConfigMaps(tn.ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"data": {"touched": "`+value+`"}}`), metav1.PatchOptions{})
			tn.must(err)
		}
	}
	for i := range n {
		name := fmt.Sprint("shared", i)
		names[name] = true
		_, err := tn.client.CoreV1().ConfigMaps(tn.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"shared": "true", "only": fmt.Sprint(i == 0)}}}, metav1.CreateOptions{})
		tn.must(err)
	}
	good, better, bad := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Good, 2), enginetest.Worse(enginetest.Traps, 3)
	module := tn.module("v1", good)
	for name, label := range map[string]string{"web": "shared", "lone": "only"} {
		tn.create(name, map[string]any{
			"module": module, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
			"selector": map[string]any{"matchLabels": map[string]any{label: "true"}}, "rollout": map[string]any{"probation": "2s"},
		})
	}
	controller := tn.ns + ".web"
	start := func() *server {
		socket := e2e.NewSocket(t)
		return &server{startServe(tn, append([]string{
			"--share", "objects", "--shards", "16", "--leader-elect-resource-namespace", tn.ns, "-v", "--socket", socket,
		}, e2e.ShortLeases...)...), socket}
	}
	first, second := start(), start()
	both := func(do func(s *server)) { do(first); do(second) }
	shares := func(s *server) int {
		st, err := admin.NewClient(s.socket).Status(t.Context())
		if err != nil || st.Shards == nil {
			return 0
		}
		return st.Shards.Here
	}
	enginetest.Until(t, "each runs a half of the slots", func() bool { return shares(first) == 8 && shares(second) == 8 })
	both(func(s *server) { s.live(controller, good); s.live(tn.ns+".lone", good) })
	before := [2]map[string]int{first.runs(controller), second.runs(controller)}
	touch("1")
	for name := range names {
		object := tn.ns + "/" + name
		enginetest.Until(t, name+" is run by one replica", func() bool {
			return (first.runs(controller)[object] > before[0][object]) != (second.runs(controller)[object] > before[1][object])
		})
	}
	both(func(s *server) {
		if len(s.runs(controller)) == 0 {
			t.Error("a replica has run nothing")
		}
	})
	tn.patch("web", map[string]any{"module": tn.module("v2", better)})
	both(func(s *server) { s.live(controller, better) })
	if r := tn.ready("web", "True", "Succeeded"); r.Status.Live.Digest != load.DigestOf(better) {
		t.Errorf("%+v", r.Status)
	}
	tn.patch("lone", map[string]any{"module": tn.module("v3", bad)})
	tn.ready("lone", "False", "RolledBack")
	both(func(s *server) { s.live(tn.ns+".lone", good) })
	failed := func(s *server) bool { return len(s.LinesWith(`wasm error: unreachable`)) > 0 }
	if failed(first) == failed(second) {
		t.Error("want one replica to have seen the failure")
	}
	first.Signal(syscall.SIGKILL)
	enginetest.Until(t, "the second replica runs all slots", func() bool { return shares(second) == 16 })
	counts := second.runs(controller)
	touch("2")
	for name := range names {
		enginetest.Until(t, name+" is run by the second replica", func() bool { return second.runs(controller)[tn.ns+"/"+name] > counts[tn.ns+"/"+name] })
	}
	second.Signal(syscall.SIGTERM)
	second.WantExit(e2e.ExitOK)
}

// TestServe_AConditionSaysThatASlotIsRunTwice: while a foreign Lease claims all slots, the condition Covered is
// False.
func TestServe_AConditionSaysThatASlotIsRunTwice(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.create("web", map[string]any{
		"module": tn.module("v1", enginetest.Worse(enginetest.Good, 1)), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "fieldSelector": "metadata.name=o0",
	})
	c := startServe(tn, "--share", "objects", "--shards", "4", "--leader-elect-resource-namespace", tn.ns)
	tn.condition("web", v1alpha1.Covered, "True", "Succeeded")
	leases := tn.client.CoordinationV1().Leases(tn.ns)
	list, err := leases.List(t.Context(), metav1.ListOptions{LabelSelector: "wasmctl.dev/shards"})
	tn.must(err)
	lasts, holder := int32(3600), "other"
	_, err = leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: holder, Labels: list.Items[0].Labels, Annotations: map[string]string{"wasmctl.dev/replica": `{"open": "0-3"}`}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}, metav1.CreateOptions{})
	tn.must(err)
	c.WantLine("shards: slots 0-3 are run by two replicas each")
	tn.annotate("web", `{"`+v1alpha1.RequestedAt+`": "1"}`)
	tn.condition("web", v1alpha1.Covered, "False", "SlotsNotCovered")
	tn.must(leases.Delete(t.Context(), holder, metav1.DeleteOptions{}))
	c.WantLine("shards: each slot is run by one replica")
	tn.annotate("web", `{"`+v1alpha1.RequestedAt+`": "2"}`)
	tn.condition("web", v1alpha1.Covered, "True", "Succeeded")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
