// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

// bothModes runs a test in either mode.
func bothModes(t *testing.T, test func(*testing.T, DryRun)) {
	for _, mode := range []DryRun{DryRunServer, DryRunClient} {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

// stored returns all ConfigMaps and Sprockets of the session's namespace as they
// are stored.
func (s *session) stored() string {
	s.t.Helper()
	var b strings.Builder
	for _, of := range [][2]string{{"v1", "ConfigMap"}, {"kubeapi.wasmctl.dev/v1", "Sprocket"}} {
		list := s.ok(abi.OpAPIList, map[string]any{"apiVersion": of[0], "kind": of[1], "namespace": s.ns})
		for _, o := range list["items"].([]any) {
			if at(o, "metadata", "name") == "kube-root-ca.crt" {
				continue // comes with the namespace, when it likes
			}
			js, err := json.Marshal(o)
			if err != nil {
				s.t.Fatal(err)
			}
			b.Write(append(js, '\n'))
		}
	}
	return b.String()
}

// essence returns an object without the fields that differ between any two writes.
func essence(object map[string]any) map[string]any {
	meta, _ := at(object, "metadata").(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		delete(meta, key)
	}
	if details, _ := object["details"].(map[string]any); details != nil {
		delete(details, "uid")
	}
	if object["kind"] == "Status" {
		delete(object, "metadata")
	}
	return object
}

// dryWrites are writes that would each change something.
func dryWrites(s *session) []struct {
	name string
	op   abi.Op
	req  map[string]any
} {
	cm := func(kv ...any) map[string]any { return s.cm("there", with(nil, kv...)) }
	return []struct {
		name string
		op   abi.Op
		req  map[string]any
	}{
		{"create", abi.OpAPICreate, map[string]any{"object": s.cm("new", map[string]any{"a": "1"})}},
		{"create what is there", abi.OpAPICreate, map[string]any{"object": cm()}},
		{"update", abi.OpAPIUpdate, map[string]any{"object": cm("b", "2")}},
		{"update what is not there", abi.OpAPIUpdate, map[string]any{"object": s.cm("none", nil)}},
		{"update an old one", abi.OpAPIUpdate, map[string]any{"object": cm(), "preconditions": map[string]any{"resourceVersion": "1"}}},
		{"merge patch", abi.OpAPIPatch, with(s.ref("there"), "patchType", "merge", "patch", map[string]any{"data": map[string]any{"a": nil, "c": "3"}})},
		{"strategic patch", abi.OpAPIPatch, with(s.ref("there"), "patchType", "strategic", "patch", map[string]any{"data": map[string]any{"c": "3"}})},
		{"json patch", abi.OpAPIPatch, with(s.ref("there"), "patchType", "json", "patch", []any{
			map[string]any{"op": "add", "path": "/data/d", "value": "4"},
		})},
		{"json patch that does not hold", abi.OpAPIPatch, with(s.ref("there"), "patchType", "json", "patch", []any{
			map[string]any{"op": "test", "path": "/data/a", "value": "9"},
		})},
		{"apply over", abi.OpAPIApply, map[string]any{"object": cm("e", "5"), "force": true}},
		{"apply again", abi.OpAPIApply, map[string]any{"object": s.cm("applied", map[string]any{"a": "1"})}},
		{"status", abi.OpAPIApply, map[string]any{"object": s.sprocket("owner", "status", map[string]any{"size": 3}), "subresource": "status"}},
		{"spec of a kind with a status", abi.OpAPIUpdate, map[string]any{
			"object":        s.sprocket("owner", "spec", map[string]any{"size": 4}, "status", map[string]any{"size": 9}),
			"preconditions": map[string]any{"resourceVersion": at(s.ok(abi.OpAPIGet, s.sprocketRef("owner")), "metadata", "resourceVersion")},
		}},
		{"delete", abi.OpAPIDelete, s.ref("there")},
		{"delete what is not there", abi.OpAPIDelete, s.ref("none")},
		{"delete another", abi.OpAPIDelete, with(s.ref("there"), "preconditions", map[string]any{"uid": "another"})},
	}
}

// TestDryRun_AnswersAsTheWriteWould: a write of a dry run stores nothing, gets the answer of the
// real write (except for generated values), and is reported with the previous state.
func TestDryRun_AnswersAsTheWriteWould(t *testing.T) {
	bothModes(t, func(t *testing.T, mode DryRun) {
		d := newDeclarer(t)
		fresh := func() {
			d.do(abi.OpAPIDelete, d.ref("there"))
			d.do(abi.OpAPIDelete, d.ref("new"))
			d.do(abi.OpAPIDelete, d.ref("applied"))
			d.ok(abi.OpAPICreate, map[string]any{"object": d.cm("there", map[string]any{"a": "1"})})
		}
		for i := range dryWrites(d.session) {
			fresh()
			w := dryWrites(d.session)[i]
			before := d.stored()
			var reported *Exchange
			d.cfg.Observer = func(_ context.Context, e *Exchange) { c := *e; reported = &c }
			dry := &session{API: d.WithDryRun(mode), t: t, ns: d.ns}
			dryStatus, dryBody := dry.do(w.op, w.req)
			d.cfg.Observer = nil
			if after := d.stored(); after != before {
				t.Fatalf("%s changed what is stored:\n%s", w.name, cmp.Diff(before, after))
			}
			if reported == nil || !reported.DryRun {
				t.Errorf("%s: told %+v, want that it was a dry run", w.name, reported)
			} else if there := strings.Contains(before, fmt.Sprintf("%q", reported.Key.Name)); there != (reported.Before.JSON != nil) {
				t.Errorf("%s: told of %s before it", w.name, reported.Before.JSON)
			}
			status, body := d.do(w.op, w.req)
			if dryStatus != status {
				t.Errorf("%s: answered %v (%v), but done %v (%v)", w.name, dryStatus, dryBody["message"], status, body["message"])
			}
			if diff := cmp.Diff(essence(body), essence(dryBody)); diff != "" && status == abi.StatusOK {
				t.Errorf("%s: (-done +dry)\n%s", w.name, diff)
			}
		}
	})
}

// TestDryRun_DeclaresWithoutBelief: a dry run tries each declared change every time, changes
// nothing, and does not remember the changes as done.
func TestDryRun_DeclaresWithoutBelief(t *testing.T) {
	bothModes(t, func(t *testing.T, mode DryRun) {
		d := newDeclarer(t)
		d.declare(d.result(configMap("a", "1"), configMap("gone", "1")))
		before := d.stored()
		var reported []string
		d.cfg.Observer = func(_ context.Context, e *Exchange) {
			if !e.Writes() {
				return
			}
			if !e.DryRun || e.Err != nil {
				t.Errorf("told %+v", e)
			}
			reported = append(reported, string(e.Op)+" "+e.Key.Name)
		}
		result := d.result(configMap("a", "2"), configMap("b", "1"))
		result.Prune, result.Status = true, msg(t, map[string]any{"size": 2})
		dry := d.WithDryRun(mode)
		for range 2 {
			reported = nil
			if err := dry.Declare(t.Context(), d.owner, result); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(reported, ", "); got != "api_apply a, api_apply b, api_delete gone, api_apply owner" {
				t.Errorf("told %s", got)
			}
		}
		d.cfg.Observer = nil
		if after := d.stored(); after != before {
			t.Fatalf("changed what is stored:\n%s", cmp.Diff(before, after))
		}
		if sent := d.declare(result); len(sent) != 4 {
			t.Errorf("the first real run sent %v, want all of it", sent)
		}
		if got := d.names(); got != "a,b" {
			t.Errorf("then there are %s", got)
		}
	})
}

// TestDryRun_AddsAFinalizerToTheAnswerOnly so that the run can go on.
func TestDryRun_AddsAFinalizerToTheAnswerOnly(t *testing.T) {
	bothModes(t, func(t *testing.T, mode DryRun) {
		d := newDeclarer(t)
		const finalizer = "wasmctl.dev/test"
		updated, err := d.WithDryRun(mode).AddFinalizer(t.Context(), d.owner.Kind, d.owner.Object, finalizer)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := unpack(updated); err != nil || len(p.Metadata.Finalizers) != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		if got := d.finalizers("owner"); strings.Contains(got, finalizer) {
			t.Errorf("stored: %s", got)
		}
		d.setFinalizers(finalizer)
		d.renew()
		if err := d.WithDryRun(mode).RemoveFinalizer(t.Context(), d.owner.Kind, d.owner.Object, finalizer); err != nil {
			t.Fatal(err)
		}
		if got := d.finalizers("owner"); !strings.Contains(got, finalizer) {
			t.Errorf("stored: %s", got)
		}
	})
}

// TestDryRun_DropsEvents: events are discarded, and reported.
func TestDryRun_DropsEvents(t *testing.T) {
	api := offlineAPI(t, NewPolicy(eventRules()))
	var reported []Exchange
	api.cfg.Observer = func(_ context.Context, e *Exchange) { reported = append(reported, *e) }
	req := msg(t, map[string]any{"reason": "Broken", "note": "x", "regarding": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x",
	}})
	for _, a := range []*API{api.WithDryRun(DryRunServer), api} {
		if got := a.Call(t.Context(), abi.OpEventRecord, req); got.Status != abi.StatusOK {
			t.Fatal(got.Status)
		}
	}
	if len(reported) != 2 || !reported[0].DryRun || reported[1].DryRun || reported[0].Event == nil || reported[0].Event.Reason != "Broken" {
		t.Errorf("told %+v", reported)
	}
}

// TestDryRun_TellsTheRunOfNoWrite: the next run must not wait for it (rule 22).
func TestDryRun_TellsTheRunOfNoWrite(t *testing.T) {
	s := sharedSession(t)
	bothModes(t, func(t *testing.T, mode DryRun) {
		ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(w abi.Write) { t.Errorf("told of %+v", w) }})
		if got := s.WithDryRun(mode).Call(ctx, abi.OpAPICreate, msg(t, map[string]any{"object": s.cm("a", nil)})); got.Status != abi.StatusOK {
			t.Error(got.Status)
		}
	})
}
