// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// status returns a status with the condition Ready.
func status(reason, message, candidate string) *v1alpha1.Status {
	st := &v1alpha1.Status{}
	ready := metav1.Condition{Type: v1alpha1.Ready, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	switch reason {
	case "Succeeded":
		ready.Status = metav1.ConditionTrue
	case "RolledBack":
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: v1alpha1.Stalled, Status: metav1.ConditionTrue, Reason: reason})
	}
	meta.SetStatusCondition(&st.Conditions, ready)
	if candidate != "" {
		st.Candidate = &v1alpha1.Candidate{Digest: candidate}
	}
	return st
}

// TestNews_TellsALife: each step of a Reconciler that matters is one event.
func TestNews_TellsALife(t *testing.T) {
	var got []string
	last := ""
	for _, st := range []*v1alpha1.Status{
		{},
		status("Progressing", "loading the module", ""), status("CachesSyncing", "configmaps is syncing", ""), status("Succeeded", "serving v1", ""),
		status("Progressing", "loading the module", ""), status("Succeeded", "serving v1", ""), // restarted
		status("Shadow", "shadow of v2: compared 1 runs", "2"), status("Shadow", "shadow of v2: compared 2 runs", "2"),
		status("Canary", "canary of v2", "2"), status("Probation", "probation of v2", "2"), status("Succeeded", "serving v2", ""),
		status("Canary", "canary of v3", "3"), status("Canary", "canary of v4", "4"), status("RolledBack", "v4: worse", ""), status("RolledBack", "v4: worse", ""),
		status("RegistryUnavailable", "port 1", ""), status("RegistryUnavailable", "port 2", ""), status("Succeeded", "serving v2", ""),
		status("Finalizing", "waiting for 7 objects", ""), status("Finalizing", "waiting for 6 objects", ""), status("Releasing", "taking the finalizer off", ""),
	} {
		e, text := news(st)
		if text == "" || text == last {
			continue
		}
		last = text
		got = append(got, e.Type[:1]+" "+e.Reason+" "+e.Note)
	}
	want := []string{
		"N Succeeded serving v1", "N Shadow shadow of v2: compared 1 runs", "N Canary canary of v2", "N Probation probation of v2", "N Succeeded serving v2",
		"N Canary canary of v3", "N Canary canary of v4", "W RolledBack v4: worse", "W RegistryUnavailable port 1", "N Succeeded serving v2",
		"N Finalizing waiting for 7 objects", "N Releasing taking the finalizer off",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestNews_IsValid for any status: the API server takes the event.
func TestNews_IsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	st, recorded := v1alpha1.Status{}, 0
	for range 5000 {
		st = next(st, randomSeen(r), time.Unix(r.Int64N(1000), 0))
		e, text := news(&st)
		if text == "" {
			continue
		}
		recorded++
		if e.Reason == "" || len(e.Reason) > events.MaxReason || e.Action == "" || len(e.Action) > events.MaxAction || e.Note == "" ||
			e.Type == corev1.EventTypeWarning && meta.IsStatusConditionTrue(st.Conditions, v1alpha1.Ready) {
			t.Fatalf("%+v for %+v", e, st.Conditions)
		}
	}
	if recorded < 1000 {
		t.Errorf("only %d events", recorded)
	}
}

// TestAddTrouble_HidesNoProblem: no controller of a Reconciler that needs attention is ok, and a problem of
// the controller comes first.
func TestAddTrouble_HidesNoProblem(t *testing.T) {
	list := []admin.Controller{{Name: "a.x", State: admin.StateOK}, {Name: "a.y", State: "fails"}, {Name: "a.z", State: admin.StateOK}, {Name: "other", State: admin.StateOK}}
	addTrouble(list, []admin.Reconciler{
		{Controller: "a.x", Reason: "RolledBack", Message: "v2: worse\nthan v1", Trouble: true}, {Controller: "a.y", Reason: "RolledBack", Trouble: true}, {Controller: "a.z", Reason: "Probation"},
	})
	for i, want := range []string{"not ready: RolledBack: v2: worse", "fails", admin.StateOK, admin.StateOK} {
		if list[i].State != want {
			t.Errorf("%s: %q, want %q", list[i].Name, list[i].State, want)
		}
	}
}
