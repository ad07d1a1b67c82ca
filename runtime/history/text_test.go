// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Users parse the JSON of a run, as wasmctl explain -o json prints it: each field has its
// name, internal fields are omitted, and the client decodes what the server has encoded.
func TestRun_JSONIsStable(t *testing.T) {
	child, changes := Object{abi.Key{Namespace: "shop", Name: "child"}}, []diff.Change{{Path: "spec", Before: "1", After: "2"}}
	whole := Run{
		ID: "a-1", TraceID: "f0", Reasons: queue.Reasons{First: abi.Reason{Type: abi.ReasonRelated, Resource: "secrets", Ref: child.Key}, More: []abi.Reason{{Type: abi.ReasonRetry}}, Dropped: 3},
		Started: start, Queued: Duration(time.Second), Took: Duration(1500 * time.Millisecond), Revision: 2, Attempt: 3, Finalize: true,
		Ending: Ending{
			Result: ResultFailed, Kind: "error", Error: "no", NoChange: true,
			Next: Next{abi.Action{Requeue: true, After: 1829577695}}, DecidedBy: "backoff", Delay: Duration(time.Minute),
		},
		Fuel: 4, Stale: true, Cost: Cost{Requests: 1}, Guest: Call{Started: start},
		Deeds: Deeds{
			First: true, Changes: changes, Related: []Related{{Resource: "secrets", Object: child, Effect: Changed, Changes: changes}}, MoreOperations: 5,
			Operations: []Operation{{
				Name: "api_apply", Resource: "secrets", Subresource: "status", Object: child, DryRun: true, Effect: Failed, Started: start,
				Took: Duration(time.Millisecond), Error: "no", Changes: changes,
			}},
		},
	}
	const change = `[{"path":"spec","before":"1","after":"2"}]`
	for want, run := range map[string]Run{
		`{"id":"a-1","traceId":"f0","reasons":["Related secrets shop/child","Retry","3 more"],"started":"2026-01-01T00:00:00Z","queued":"1s","took":"1.5s",` +
			`"revision":2,"attempt":3,"finalize":true,"result":"failed","kind":"error","error":"no","next":"requeue after 1.83s","decidedBy":"backoff","delay":"1m0s",` +
			`"fuel":4,"stale":true,"first":true,"changes":` + change + `,"related":[{"resource":"secrets","object":"shop/child","effect":"changed","changes":` + change + `}],` +
			`"operations":[{"name":"api_apply","resource":"secrets","subresource":"status","object":"shop/child","dryRun":true,"effect":"failed","took":"1ms","error":"no","changes":` + change + `}],"moreOperations":5}`: whole,
		`{"reasons":[],"started":"0001-01-01T00:00:00Z","queued":"0s","took":"0s","result":"","next":"await change","operations":[{"name":"","effect":""}]}`: {Deeds: Deeds{Operations: []Operation{{}}}},
	} {
		js, err := json.Marshal(run)
		if d := cmp.Diff(want, string(js)); err != nil || d != "" {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
		var back Run
		if err := json.Unmarshal(js, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if d := cmp.Diff(want, string(again)); err != nil || d != "" {
			t.Errorf("read back: %v (-want +got):\n%s", err, d)
		}
	}
}

func TestNext_RoundsForPeople(t *testing.T) {
	for after, want := range map[time.Duration]string{
		232193422: "requeue after 232ms", 1829577695: "requeue after 1.83s", 300 * time.Second: "requeue after 5m0s", 1500: "requeue after 1.5µs", 0: "requeue after 0s",
	} {
		if got := (Next{abi.Action{Requeue: true, After: after}}).String(); got != want {
			t.Errorf("%d: %q, want %q", after, got, want)
		}
	}
	var next Next
	if err := next.UnmarshalText([]byte("never")); err == nil || next != (Next{}) {
		t.Errorf("%v, error %v", next, err)
	}
}

// Hide works on a copy: the run in the Recorder and the copies of other readers do not
// change.
func TestRun_HideLeavesTheStoredOneAlone(t *testing.T) {
	r, key := New(1<<20), abi.Key{Name: "a"}
	changes := []diff.Change{{Path: "data.s", Before: `"secret"`, After: `"x"`}}
	r.Begin(&Running{ID: "1", Key: key, Since: start, Operations: []Operation{{Name: "api_apply", Changes: changes}}})
	r.End(key, &Run{ID: "1", Started: start, Deeds: Deeds{Changes: changes, Related: []Related{{Changes: changes}}}})
	run := r.Runs(key)[0]
	run.Hide(func(s string) string { return strings.ReplaceAll(s, "secret", "***") })
	shown, err := json.Marshal(run)
	if err != nil || strings.Contains(string(shown), "secret") || strings.Count(string(shown), "***") != 3 {
		t.Errorf("%s, error %v", shown, err)
	}
	stored, err := json.Marshal(r.Runs(key)[0])
	if err != nil || strings.Count(string(stored), "secret") != 3 {
		t.Errorf("%s, error %v", stored, err)
	}
}
