// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// randomSeen returns a random observation.
func randomSeen(r *rand.Rand) *seen {
	in := &seen{generation: int64(1 + r.IntN(5)), requested: pick(r, "", "now"), suspended: r.IntN(8) == 0, verified: r.IntN(2) == 0, count: r.IntN(2) == 0}
	if r.IntN(5) > 0 {
		in.wanted = &v1alpha1.Revision{Digest: pick(r, "a", "b", "c"), Image: "host/x@sha256:1", Version: "v1", Generation: in.generation}
	}
	if r.IntN(3) == 0 {
		in.problem = &problem{
			condition: pick(r, "", v1alpha1.ModuleFetched, v1alpha1.ModuleVerified, v1alpha1.Granted, v1alpha1.KindServed),
			reason:    pick(r, "ImagePullFailed", "InvalidSpec"), message: "why", stalled: r.IntN(2) == 0,
		}
	}
	if in.wanted != nil && r.IntN(6) == 0 {
		in.refused = &v1alpha1.Refused{Digest: in.wanted.Digest, Reason: pick(r, reasonDiffers, "ModuleRefused"), Message: "why"}
	} else if in.wanted != nil && r.IntN(6) == 0 {
		in.shadow = &v1alpha1.Candidate{Digest: in.wanted.Digest, Stage: stageShadow, Runs: 3, Differences: r.Int64N(3)}
	}
	if r.IntN(6) == 0 {
		in.mode, in.audit, in.auditing = string(v1alpha1.ModeAudit), &v1alpha1.Audit{Writes: []string{"created apply configmaps a/b"}}, r.IntN(2) == 0
	}
	if r.IntN(4) == 0 {
		return in
	}
	c := &admin.Controller{
		Phase: pick(r, admin.PhaseLoading, admin.PhaseWaiting, admin.PhaseRunning, admin.PhaseRunning, admin.PhaseRunning, admin.PhaseFailed), Message: "why",
		Kind: "configmaps", Digest: pick(r, "a", "b", "c"), Failing: r.IntN(2), Quarantined: r.IntN(2),
		Watches: []admin.Watch{{Source: "configmaps", Phase: pick(r, "ready", "ready", "ready", "syncing"), Objects: r.IntN(3)}},
	}
	c.Revisions = append(c.Revisions, admin.Revision{Number: 1, Digest: c.Digest, State: pick(r, "live", "live", "probation", "failed")})
	for range r.IntN(3) {
		c.Revisions = append(c.Revisions, admin.Revision{
			Digest: pick(r, "a", "b", "c"), State: pick(r, "canary", "loading", "failed", "refused", "aborted", "kept", "replaced", "draining"), Reason: "why", Runs: r.Uint64N(2000),
		})
	}
	if r.IntN(4) == 0 {
		c.MissingRights = []admin.MissingRight{{Rule: []byte(`{}`), Missing: "grant"}, {Rule: []byte(`{}`), Missing: "RBAC", Message: "User \"u\" cannot patch"}}
	}
	c.Restarting = c.Phase == admin.PhaseRunning && r.IntN(6) == 0
	if since := time.Unix(1, 0); r.IntN(4) == 0 {
		c.Webhooks = []admin.Webhook{{Type: "validate", Name: "/v", Since: pick(r, nil, &since)}, {Type: "convert", Name: "App.example.dev", Message: "why", Never: r.IntN(2) == 0}}
	}
	in.controller = c
	return in
}

// kstatus returns the result that kstatus computes for a status of the newest generation.
func kstatus(st *v1alpha1.Status) string {
	for _, c := range st.Conditions {
		switch {
		case c.Type == v1alpha1.Reconciling && c.Status == metav1.ConditionTrue:
			return "InProgress"
		case c.Type == v1alpha1.Stalled && c.Status == metav1.ConditionTrue:
			return "Failed"
		}
	}
	if meta.IsStatusConditionTrue(st.Conditions, v1alpha1.Ready) {
		return "Current"
	}
	return "InProgress"
}

// wrong lists the rules of Flux and kstatus that a status breaks.
func wrong(st *v1alpha1.Status, in *seen) (list []string) {
	bad := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.Ready)
	if ready == nil || ready.Reason == "" {
		return []string{"there is no Ready"}
	}
	reconciling, stalled := meta.FindStatusCondition(st.Conditions, v1alpha1.Reconciling), meta.FindStatusCondition(st.Conditions, v1alpha1.Stalled)
	for _, c := range []*metav1.Condition{reconciling, stalled} {
		if c != nil && (c.Status != metav1.ConditionTrue || c.Reason != ready.Reason || c.Message != ready.Message || ready.Status == metav1.ConditionTrue) {
			bad("%s does not agree with %v: %v", c.Type, ready, c)
		}
	}
	if reconciling != nil && stalled != nil {
		bad("reconciling and stalled")
	}
	if ready.Status == metav1.ConditionFalse && reconciling == nil && stalled == nil && !in.suspended {
		bad("neither ready, nor reconciling, nor stalled")
	}
	for _, c := range st.Conditions {
		if c.ObservedGeneration != in.generation || st.ObservedGeneration != in.generation {
			bad("%s is about generation %d, of %d", c.Type, c.ObservedGeneration, in.generation)
		}
	}
	if k := kstatus(st); (k == "Current") != (ready.Status == metav1.ConditionTrue) || (k == "Failed") != (stalled != nil) {
		bad("kstatus says %s", k)
	}
	if ready.Status == metav1.ConditionTrue && (in.suspended || in.problem != nil || st.Candidate != nil || st.Refused != nil || st.Live == nil || in.wanted == nil || st.Live.Digest != in.wanted.Digest) {
		bad("ready, but %+v", *st)
	}
	if ready.Status == metav1.ConditionTrue && in.controller.Restarting {
		bad("ready, but the controller still has earlier options")
	}
	if ready.Status == metav1.ConditionTrue && st.Objects == nil {
		bad("ready, but its objects were not counted")
	}
	if len(st.History) > maxHistory {
		bad("%d entries of history", len(st.History))
	}
	return list
}

// TestNext_EveryStatusIsOneThatFluxAndKstatusRead: after any sequence of observations, the status
// follows the rules. A repeated observation changes nothing.
func TestNext_EveryStatusIsOneThatFluxAndKstatusRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	now := time.Unix(1e9, 0)
	kinds := map[string]int{}
	for range 2000 {
		st := v1alpha1.Status{ObservedGeneration: -1}
		for range 20 {
			in := randomSeen(r)
			now = now.Add(time.Second)
			before, counted := st.Live, st.Objects
			st = next(st, in, now)
			if c := in.controller; c != nil && len(c.Watches) > 0 && c.Watches[0].Phase == "syncing" && !reflect.DeepEqual(st.Objects, counted) {
				t.Fatalf("%+v were counted before the watch had synced", st.Objects)
			}
			if before != nil && st.Live.Digest != before.Digest && !slices.ContainsFunc(in.controller.Revisions, func(r admin.Revision) bool {
				return r.Digest == st.Live.Digest && r.State == "live"
			}) {
				t.Fatalf("%s is live, of %+v", st.Live.Digest, in.controller.Revisions)
			}
			if list := wrong(&st, in); len(list) > 0 {
				t.Fatalf("%q\n%+v\n%+v", list, in, st)
			}
			in.count = false
			if again := next(st, in, now.Add(time.Second)); !reflect.DeepEqual(again, st) {
				t.Fatalf("a second look at %+v:\n%+v\n%+v", in, st, again)
			}
			kinds[kstatus(&st)]++
		}
	}
	if kinds["Current"] < 100 || kinds["Failed"] < 100 || kinds["InProgress"] < 100 {
		t.Errorf("%v", kinds)
	}
}

// TestPauseAfter_RestsInEveryEnd: a unit that is ready or stalled is not looked at several times per
// second.
func TestPauseAfter_RestsInEveryEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	for range 20_000 {
		in := randomSeen(r)
		st := next(v1alpha1.Status{}, in, time.Unix(1e9, 0))
		d := pauseAfter(in, 1+r.IntN(100))
		switch ready := meta.FindStatusCondition(st.Conditions, v1alpha1.Ready); {
		case d < guard.MinRequeue || d > mostRetry: // otherwise, the unit itself would be a hot loop
			t.Fatalf("%v for %+v", d, in)
		case (ready.Status == metav1.ConditionTrue || meta.IsStatusConditionTrue(st.Conditions, v1alpha1.Stalled)) && d < onTrial:
			t.Fatalf("%v, although %s %s: %+v", d, ready.Status, ready.Reason, in)
		}
	}
}

// TestNext_GrantedHasTheTextOfTheAPIServer for a right that RBAC lacks.
func TestNext_GrantedHasTheTextOfTheAPIServer(t *testing.T) {
	right := admin.MissingRight{Rule: []byte(`{"resource":"configmaps","verbs":["patch"]}`), Missing: "RBAC", Message: `User "u" cannot patch resource "configmaps"`}
	st := next(v1alpha1.Status{}, &seen{controller: &admin.Controller{Phase: admin.PhaseRunning, MissingRights: []admin.MissingRight{right}}}, time.Unix(0, 0))
	granted := meta.FindStatusCondition(st.Conditions, v1alpha1.Granted)
	want := `missing rights: {"resource":"configmaps","verbs":["patch"]} (RBAC): User "u" cannot patch resource "configmaps"`
	if granted == nil || granted.Reason != "RightsMissing" || granted.Message != want {
		t.Errorf("%+v", granted)
	}
}

// TestNext_WebhooksRegistered names the webhooks that are not registered. A conversion that a Reconciler never serves is none of them.
func TestNext_WebhooksRegistered(t *testing.T) {
	since := time.Unix(1, 0)
	ok := admin.Webhook{Type: "validate", Name: "/a.b/v", Since: &since}
	never := admin.Webhook{Type: "convert", Name: "App.example.dev", Message: "a Reconciler converts nothing", Never: true}
	for want, webhooks := range map[string][]admin.Webhook{
		"":                                  nil,
		"True: registered: validate /a.b/v": {ok},
		"True: convert App.example.dev: a Reconciler converts nothing; registered: validate /a.b/v":       {ok, never},
		"False: default /a.b/d is not registered: the configuration is full; registered: validate /a.b/v": {ok, {Type: "default", Name: "/a.b/d", Message: "the configuration is full"}},
	} {
		st := next(v1alpha1.Status{}, &seen{controller: &admin.Controller{Phase: admin.PhaseRunning, Webhooks: webhooks}}, time.Unix(0, 0))
		got := ""
		if c := meta.FindStatusCondition(st.Conditions, v1alpha1.WebhooksRegistered); c != nil {
			got = string(c.Status) + ": " + c.Message
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProgress_HasTheObjectsOfACanary(t *testing.T) {
	for want, k := range map[string]v1alpha1.Candidate{
		"canary of v2: revision 2 serves 4 of 7 objects (50%)": {Stage: "Canary", Version: "v2", Objects: "canary: revision 2 serves 4 of 7 objects (50%)"},
		"probation of v2":                         {Stage: "Probation", Version: "v2"},
		"shadow of v2: compared 3 runs, 1 differ": {Stage: stageShadow, Version: "v2", Runs: 3, Differences: 1},
	} {
		if got := progress(&k); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
