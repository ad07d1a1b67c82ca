// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// TestDenied_IsLoggedOnceAndCounted however often a module asks.
func TestDenied_IsLoggedOnceAndCounted(t *testing.T) {
	var log strings.Builder
	api := offlineAPI(t, nil)
	api.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	get := func(name, ns string) {
		api.Call(t.Context(), abi.OpAPIGet, msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": ns, "name": name}))
	}
	for i := range 5 {
		get(fmt.Sprint("x", i), "a")
	}
	get("y", "b")
	got := api.WithPolicy(nil).Denied()
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	if len(got) != 1 || got[0].Count != 6 || got[0].Last.String() != "b/y" || strings.Join(got[0].Rule.Namespaces, ",") != "a,b" || got[0].Where != inManifest {
		t.Errorf("%+v", got)
	}
	for i := range 20 {
		get("z", fmt.Sprint("ns", i))
	}
	if got := api.Denied(); len(got) != 1 || got[0].Rule.Namespaces != nil || got[0].Count != 26 {
		t.Errorf("%+v", got)
	}
}

// TestDenied_OfTheAPIServerEnds when the same kind of request succeeds, or if it is not repeated. Other
// requests do not change it.
func TestDenied_OfTheAPIServerEnds(t *testing.T) {
	at := func(op abi.Op, ns string, created bool) *request {
		return &request{op: op, kind: kinds.Kind{Resource: "configmaps"}, key: abi.Key{Namespace: ns, Name: "x"}, created: created}
	}
	rule := func(verb string) *refusal {
		return &refusal{message: verb, where: inRBAC, rule: &abi.Capability{Resource: "configmaps", Verbs: []string{verb}, Namespaces: []string{"a"}}}
	}
	start := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		verb    string
		succeed *request
		after   time.Duration
		left    int
	}{
		"the same":               {"patch", at(abi.OpAPIApply, "a", false), 0, 1},
		"in another namespace":   {"patch", at(abi.OpAPIApply, "b", false), 0, 2},
		"another verb":           {"patch", at(abi.OpAPIDelete, "a", false), 0, 2},
		"an apply that creates":  {"create", at(abi.OpAPIApply, "a", true), 0, 1},
		"an apply that does not": {"create", at(abi.OpAPIApply, "a", false), 0, 2},
		"nothing for long":       {"patch", at(abi.OpAPIGet, "a", false), forbiddenFor + 1, 1},
		"nothing":                {"patch", at(abi.OpAPIGet, "a", false), forbiddenFor, 2},
	} {
		var rs refusals
		rs.add(rule(tt.verb), at(abi.OpAPIApply, "a", false), start)
		ofPolicy := rule(tt.verb)
		ofPolicy.where = inGrant
		rs.add(ofPolicy, at(abi.OpAPIApply, "a", false), start)
		rs.permit(tt.succeed)
		if got := rs.all(start.Add(tt.after)); len(got) != tt.left {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDenied_IsBounded in number, whatever the requests.
func TestDenied_IsBounded(t *testing.T) {
	var rs refusals
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				rs.add(&refusal{rule: &abi.Capability{Resource: fmt.Sprint("r", i), Verbs: []string{"get"}, Namespaces: []string{fmt.Sprint(g)}}}, &request{op: abi.OpAPIGet}, time.Unix(0, 0))
				rs.all(time.Unix(0, 0))
			}
		})
	}
	wg.Wait()
	var total uint64
	for _, d := range rs.all(time.Unix(0, 0)) {
		total += d.Count
	}
	if n := len(rs.all(time.Unix(0, 0))); n != maxDenied || total == 0 || total > 800 {
		t.Errorf("%d rights, %d refusals", n, total)
	}
}
