// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/abi"
)

// TestDefault_IsValidAndChangesNothingTwice, and does not write into what the caller shares.
func TestDefault_IsValidAndChangesNothingTwice(t *testing.T) {
	shared := &Rollout{Canary: &Canary{Percent: 10}, Shadow: &Shadow{}}
	for _, r := range []*Rollout{nil, {}, shared, {AutoRollback: new(false)}} {
		s := ControllerSpec{CommonSpec: CommonSpec{Rollout: r}}
		s.Default()
		once := s
		once.Default()
		if diff := cmp.Diff(s, once); diff != "" {
			t.Errorf("a second Default changes something:\n%s", diff)
		}
		if errs := s.Validate(nil); len(errs) > 0 {
			t.Error(errs)
		}
		if off := r != nil && r.AutoRollback != nil; (s.Rollout.Probation == "0s") != off {
			t.Errorf("probation %s", s.Rollout.Probation)
		}
	}
	if shared.Canary.Time != "" || shared.Shadow.Time != "" || shared.Probation != "" {
		t.Errorf("the caller's rollout was changed: %+v", shared)
	}
}

// TestValidate_NamesEachField that is wrong, and nothing else.
func TestValidate_NamesEachField(t *testing.T) {
	for want, set := range map[string]func(*ControllerSpec){
		"allNamespaces": func(s *ControllerSpec) { s.Namespaces, s.AllNamespaces = []string{"a"}, true },
		"module.image": func(s *ControllerSpec) {
			s.Module = ControllerModule{File: "a", ModuleSource: ModuleSource{Image: "b"}}
		},
		"module.follow":                func(s *ControllerSpec) { s.Module = ModuleOf("a.wasm"); s.Module.Follow = "1m" },
		"module.verify.keys[0]":        func(s *ControllerSpec) { s.Module.Verify = &Verify{Keys: []string{"x"}} },
		"selector":                     func(s *ControllerSpec) { s.Selector = &Selector{MatchLabels: map[string]string{"a b": ""}} },
		"fieldSelector":                func(s *ControllerSpec) { s.FieldSelector = "a" },
		"predicates":                   func(s *ControllerSpec) { s.Predicates = []string{"generatoin"} },
		"resync":                       func(s *ControllerSpec) { s.Resync = "1ms" },
		"schedule":                     func(s *ControllerSpec) { s.Schedule = []string{"@every 1s"} },
		"config":                       func(s *ControllerSpec) { s.Config = Config{"a": []any{}} },
		"concurrency":                  func(s *ControllerSpec) { s.Concurrency = new(int32(0)) },
		"limits":                       func(s *ControllerSpec) { s.Limits = Limits{"speed": intstr.FromInt32(1)} },
		"limits.memory":                func(s *ControllerSpec) { s.Limits = Limits{"memory": intstr.FromInt32(1)} },
		"limits.stack":                 func(s *ControllerSpec) { s.Limits = Limits{"stack": intstr.FromString("1Gi")} },
		"limits.timeout":               func(s *ControllerSpec) { s.Limits = Limits{"timeout": intstr.FromInt32(5)} },
		"mode":                         func(s *ControllerSpec) { s.Mode = "dry" },
		"rollout.probation":            func(s *ControllerSpec) { s.Rollout = &Rollout{Probation: "-1s"} },
		"rollout.reconcile":            func(s *ControllerSpec) { s.Rollout = &Rollout{Reconcile: "some"} },
		"namespaces[1]":                func(s *ControllerSpec) { s.Namespaces = []string{"a", ""} },
		"namespaces[0]":                func(s *ControllerSpec) { s.Namespaces = []string{"Shop"} },
		"namespaces[2]":                func(s *ControllerSpec) { s.Namespaces = []string{"a", "b", "a"} },
		"adoptManagers[0]":             func(s *ControllerSpec) { s.AdoptManagers = []string{""} },
		"adoptManagers[1]":             func(s *ControllerSpec) { s.AdoptManagers = []string{"manager", "manager"} },
		"grant.finalizers[1]":          func(s *ControllerSpec) { s.Grant = &Grant{Finalizers: []string{"a.dev/x", "a.dev/x"}} },
		"grant.digests[1]":             func(s *ControllerSpec) { s.Grant = &Grant{Digests: []string{"sha256:a", "sha256:a"}} },
		"grant.signers[1]":             func(s *ControllerSpec) { s.Grant = &Grant{Signers: []string{"sha256:a", "sha256:a"}} },
		"rollout.canary.namespaces[1]": func(s *ControllerSpec) { s.Rollout = &Rollout{Canary: &Canary{Namespaces: []string{"a", ""}}} },
		"rollout.canary.time":          func(s *ControllerSpec) { s.Rollout = &Rollout{Canary: &Canary{Time: "soon"}} },
		"debounce":                     func(s *ControllerSpec) { s.Debounce = Debounce{Quiet: "5s", Max: "1s"} },
		"triggerOn.signal":             func(s *ControllerSpec) { s.TriggerOn.Signal = "HUP" },
		"grant.manifest":               func(s *ControllerSpec) { s.Grant = &Grant{Manifest: true, Capabilities: []abi.Capability{{}}} },
		"grantFile":                    func(s *ControllerSpec) { s.GrantFile, s.Grant = "g", &Grant{Manifest: true} },
		"auditFile":                    func(s *ControllerSpec) { s.AuditFile, s.GrantFile = "a", "g" },
		"as":                           func(s *ControllerSpec) { s.As = "system:serviceaccount:a" },
		"isolate":                      func(s *ControllerSpec) { s.Isolate = "A B" },
		"memo":                         func(s *ControllerSpec) { s.Memo = "of" },
		"history":                      func(s *ControllerSpec) { s.History = "much" },
		"drainTimeout":                 func(s *ControllerSpec) { s.DrainTimeout = "-1s" },
		"shardBy":                      func(s *ControllerSpec) { s.ShardBy = "name" },
	} {
		var s ControllerSpec
		set(&s)
		errs := s.Validate(field.NewPath("controllers").Index(2))
		if len(errs) != 1 || errs[0].Field != "controllers[2]."+want {
			t.Errorf("%s: %v", want, errs)
		}
	}
}

// TestBounds_LowerOnly: a Reconciler may lower what the process allows.
func TestBounds_LowerOnly(t *testing.T) {
	b := Bounds{Limits: map[abi.LimitName]int64{abi.LimitMemory: 1 << 20, abi.LimitTimeout: 5e9}, Concurrency: 4}
	for _, c := range []struct {
		memory, timeout string
		concurrency     int32
		want            string
	}{
		{"1Mi", "5s", 4, ""}, {"1Mi", "5s", 5, "concurrency"}, {"2Mi", "5s", 4, "limits.memory"}, {"1Mi", "1m", 4, "limits.timeout"},
	} {
		s := &CommonSpec{Concurrency: &c.concurrency, Limits: Limits{"memory": intstr.FromString(c.memory), "timeout": intstr.FromString(c.timeout), "fuel": intstr.FromString("9G")}}
		var got []string
		for _, e := range b.Check(s) {
			got = append(got, e.Field)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestSelector_TextMeansTheSame: a selector as text matches what labels.Parse says, before
// and after it was written as JSON.
func TestSelector_TextMeansTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for range 2000 {
		var parts []string
		for range r.IntN(4) {
			key := pick("a", "b", "c")
			parts = append(parts, pick(key, "!"+key, key+"=1", key+"==2", key+"!=1", key+" in (1, 2)", key+" notin (2)", key+">1", key+"<2"))
		}
		text := strings.Join(parts, ",")
		want, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := SelectorOf(text)
		if err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back *Selector
		if err := json.Unmarshal(content, &back); err != nil {
			t.Fatal(err)
		}
		again, err := SelectorOf(s.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Selector{s, back, again} {
			got, err := s.Labels()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 64 {
				set := labels.Set{}
				for j, key := range []string{"a", "b", "c"} {
					if v := i >> (2 * j) & 3; v > 0 {
						set[key] = fmt.Sprint(v)
					}
				}
				if got.Matches(set) != want.Matches(set) {
					t.Fatalf("%q of %v: %v, want %v", text, set, got, want)
				}
			}
		}
	}
	s := &Selector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a=b", Operator: opText}}}
	if _, err := s.Labels(); err == nil {
		t.Error("an object may have the operator of a text that is no selector")
	}
}
