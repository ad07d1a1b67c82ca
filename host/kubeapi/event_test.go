// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
)

// recording runs the recorder of a session until the test ends.
func (d *declarer) recording() {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	d.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Errorf("recorder: %v", err)
		}
	})
}

// record records events about the owner.
func (d *declarer) record(req map[string]any) abi.Response {
	ctx := abi.WithRun(d.t.Context(), &abi.Run{Object: d.owner.Object})
	return d.Call(ctx, abi.OpEventRecord, msg(d.t, req))
}

// awaitEvents waits for events in a namespace until enough returns true.
func (d *declarer) awaitEvents(namespace string, enough func([]any) bool) []any {
	d.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		items := d.ok(abi.OpAPIList, map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "Event", "namespace": namespace})["items"].([]any)
		if enough(items) {
			return items
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("events: %v\ncounts: %+v", items, d.EventCounts())
		}
	}
}

func eventRules() []abi.Capability {
	return append(everything().rules, abi.Capability{Group: "events.k8s.io", Resource: "events", Verbs: []string{"*"}})
}

// TestEvent_IsRecordedWithItsSeries about the object that is reconciled.
func TestEvent_IsRecordedWithItsSeries(t *testing.T) {
	d := newDeclarer(t)
	d.cfg.Policy, d.cfg.Secrets = NewPolicy(eventRules()), &redact.Values{}
	d.cfg.Secrets.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": "hunter2-hunter2"}})
	d.recording()
	about := map[string]any{"type": "Warning", "reason": "Broken", "action": "Fix", "note": "100% größe: hunter2-hunter2", "related": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "namespace": d.ns, "name": "a",
	}}
	if got := d.record(about); got.Status != abi.StatusOK || len(got.Body) != 1 || got.Body[0] != 0xc0 {
		t.Fatalf("%v: %x", got.Status, got.Body)
	}
	first := d.awaitEvents(d.ns, func(items []any) bool { return len(items) == 1 })[0].(map[string]any)
	for want, path := range map[string][]any{
		"Warning": {"type"}, "Broken": {"reason"}, "Fix": {"action"}, "100% größe: [redacted]": {"note"}, "wasmctl/tester": {"reportingController"},
		"Sprocket": {"regarding", "kind"}, "kubeapi.wasmctl.dev/v1": {"regarding", "apiVersion"}, d.uid(): {"regarding", "uid"}, "a": {"related", "name"},
	} {
		if got := at(first, path...); got != want {
			t.Errorf("%v: %v, want %v", path, got, want)
		}
	}
	for i := range 5 {
		d.record(with(about, "note", fmt.Sprint("again ", i)))
	}
	items := d.awaitEvents(d.ns, func(items []any) bool { return at(items[0], "series", "count") != nil })
	if len(items) != 1 || at(items[0], "series", "count").(int64) < 2 {
		t.Errorf("events of a series: %v", items)
	}
	d.record(map[string]any{"reason": "Fine"})
	d.awaitEvents(d.ns, func(items []any) bool {
		for _, e := range items {
			if at(e, "reason") == "Fine" && at(e, "type") == "Normal" && at(e, "action") == "Reconcile" {
				return true
			}
		}
		return false
	})
}

// TestEvent_AboutAClusterScopedObject lies in namespace default.
func TestEvent_AboutAClusterScopedObject(t *testing.T) {
	d := newDeclarer(t)
	d.cfg.Policy = NewPolicy(eventRules())
	d.recording()
	d.record(map[string]any{"reason": "Seen", "regarding": map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": d.ns}})
	d.awaitEvents("default", func(items []any) bool {
		for _, e := range items {
			if at(e, "regarding", "name") == d.ns {
				return true
			}
		}
		return false
	})
}

func TestEvent_BadRequests(t *testing.T) {
	api := offlineAPI(t, NewPolicy(eventRules()))
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}
	good := map[string]any{"reason": "R", "regarding": object}
	for text, req := range map[string]map[string]any{
		"reason is needed":        with(good, "reason", ""),
		"reason: has 129":         with(good, "reason", strings.Repeat("x", 129)),
		"action: has 129":         with(good, "action", strings.Repeat("x", 129)),
		`"Odd" is neither Normal`: with(good, "type", "Odd"),
		"regarding is needed":     {"reason": "R"},
		"regarding: apiVersion":   with(good, "regarding", with(object, "kind", "")),
		"related: apiVersion":     with(good, "related", map[string]any{}),
		`regarding: "a/b"`:        with(good, "regarding", with(object, "name", "a/b")),
		"request of event_record": with(good, "note", 1),
	} {
		got := api.Call(t.Context(), abi.OpEventRecord, msg(t, req))
		if body := statusBody(t, got); got.Status != abi.StatusBadRequest || !strings.Contains(body["message"].(string), text) {
			t.Errorf("%v: %v, want ...%s...", got.Status, body["message"], text)
		}
	}
	if got := api.Call(t.Context(), abi.OpEventRecord, msg(t, with(good, "colour", "red"))); got.Status != abi.StatusOK || api.UnknownKeys() != 1 {
		t.Errorf("%v, %d unknown keys", got.Status, api.UnknownKeys())
	}
}

// TestEvent_NeedsACapability: the capability is needed in the namespace of the event. Nothing is
// allowed by default.
func TestEvent_NeedsACapability(t *testing.T) {
	d := &declarer{session: &session{API: offlineAPI(t, everything()), t: t}}
	d.owner.Object = msg(t, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": "a"}})
	rule := func(ns string) string {
		return `{"group":"events.k8s.io","resource":"events","verbs":["create","patch"],"namespaces":["` + ns + `"]}`
	}
	ask := func(req map[string]any) string {
		got := d.record(req)
		if got.Status == abi.StatusOK {
			return ""
		}
		return fmt.Sprint(got.Status, statusBody(t, got)["message"])
	}
	if got := ask(map[string]any{"reason": "R"}); !strings.Contains(got, "DENIED") || !strings.Contains(got, rule("a")) {
		t.Error(got)
	}
	node := map[string]any{"reason": "R", "regarding": map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n"}}
	if got := ask(node); !strings.Contains(got, rule("default")) {
		t.Error(got)
	}
	d.cfg.Policy = NewPolicy([]abi.Capability{{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}, Namespaces: []string{"a"}}})
	if got := ask(map[string]any{"reason": "R"}); got != "" {
		t.Error(got)
	}
	if got := ask(node); !strings.Contains(got, rule("default")) {
		t.Error(got)
	}
}

// TestEvent_NeverWaits: events that are not sent are discarded and counted.
func TestEvent_NeverWaits(t *testing.T) {
	api := offlineAPI(t, NewPolicy(eventRules()))
	for i := range 1200 {
		got := api.Call(t.Context(), abi.OpEventRecord, msg(t, map[string]any{
			"reason": "R", "regarding": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": fmt.Sprint("x", i)},
		}))
		if got.Status != abi.StatusOK {
			t.Fatal(got.Status)
		}
	}
	if c := api.EventCounts(); c.Dropped != 200 || c.Limited != 0 {
		t.Errorf("%+v", c)
	}
}
