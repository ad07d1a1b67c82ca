// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// parsed returns the spec for flags, and the error of its validation.
func parsed(t *testing.T, args ...string) (*v1alpha1.ControllerSpec, error) {
	t.Helper()
	s, cmd := &v1alpha1.ControllerSpec{}, &cobra.Command{}
	Bind(cmd, s)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return s, Validate(s)
}

// sample is a value of a field, in each form in which it can be set.
type sample struct {
	flag string                         // the value of the flag
	json string                         // the value in a file and in a Reconciler
	set  func(*v1alpha1.ControllerSpec) // sets the value in Go
}

func rollout(s *v1alpha1.ControllerSpec) *v1alpha1.Rollout {
	s.Rollout = &v1alpha1.Rollout{}
	return s.Rollout
}

func canary(s *v1alpha1.ControllerSpec) *v1alpha1.Canary {
	c := &v1alpha1.Canary{}
	rollout(s).Canary = c
	return c
}

func grants(s *v1alpha1.ControllerSpec) *v1alpha1.Grant {
	s.Grant = &v1alpha1.Grant{}
	return s.Grant
}

func limit(name, text string) func(*v1alpha1.ControllerSpec) {
	return func(s *v1alpha1.ControllerSpec) { s.Limits = v1alpha1.Limits{name: intstr.FromString(text)} }
}

var web = &v1alpha1.Selector{MatchLabels: map[string]string{"tier": "web"}}

// samples has one for each field.
var samples = map[string]sample{
	"module.file":  {json: `"/m.wasm"`, set: func(s *v1alpha1.ControllerSpec) { s.Module.File = "/m.wasm" }},
	"module.image": {json: `"h/r:1"`, set: func(s *v1alpha1.ControllerSpec) { s.Module.Image = "h/r:1" }},
	"for": {"apps/v1/Deployment", `{"apiVersion": "apps/v1", "kind": "Deployment"}`, func(s *v1alpha1.ControllerSpec) {
		s.For = &v1alpha1.Kind{APIVersion: "apps/v1", Kind: "Deployment"}
	}},
	"owns": {"v1/Secret", `[{"apiVersion": "v1", "kind": "Secret"}]`, func(s *v1alpha1.ControllerSpec) {
		s.Owns = []v1alpha1.Kind{{APIVersion: "v1", Kind: "Secret"}}
	}},
	"namespaces":        {"a,b", `["a", "b"]`, func(s *v1alpha1.ControllerSpec) { s.Namespaces = []string{"a", "b"} }},
	"allNamespaces":     {"true", "true", func(s *v1alpha1.ControllerSpec) { s.AllNamespaces = true }},
	"selector":          {"tier=web", `{"matchLabels": {"tier": "web"}}`, func(s *v1alpha1.ControllerSpec) { s.Selector = web }},
	"fieldSelector":     {"a=b", `"a=b"`, func(s *v1alpha1.ControllerSpec) { s.FieldSelector = "a=b" }},
	"predicates":        {"generation", `["generation"]`, func(s *v1alpha1.ControllerSpec) { s.Predicates = []string{"generation"} }},
	"resync":            {"5m", `"5m0s"`, func(s *v1alpha1.ControllerSpec) { s.Resync = "5m0s" }},
	"adoptManagers":     {"operator", `["operator"]`, func(s *v1alpha1.ControllerSpec) { s.AdoptManagers = []string{"operator"} }},
	"schedule":          {"0 * * * *", `["0 * * * *"]`, func(s *v1alpha1.ControllerSpec) { s.Schedule = []string{"0 * * * *"} }},
	"triggerOn.signal":  {"USR1", `"USR1"`, func(s *v1alpha1.ControllerSpec) { s.TriggerOn.Signal = "USR1" }},
	"triggerOn.stdin":   {"true", "true", func(s *v1alpha1.ControllerSpec) { s.TriggerOn.Stdin = true }},
	"debounce.quiet":    {"2s", `"2s"`, func(s *v1alpha1.ControllerSpec) { s.Debounce.Quiet = "2s" }},
	"debounce.max":      {"9s", `"9s"`, func(s *v1alpha1.ControllerSpec) { s.Debounce.Max = "9s" }},
	"concurrency":       {"7", "7", func(s *v1alpha1.ControllerSpec) { s.Concurrency = new(int32(7)) }},
	"limits":            {"api_rate=50", `{"api_rate": "50"}`, limit("api_rate", "50")},
	"limits.timeout":    {"10s", `"10s"`, limit("timeout", "10s")},
	"limits.memory":     {"64Mi", `"64Mi"`, limit("memory", "64Mi")},
	"limits.fuel":       {"5M", `"5M"`, limit("fuel", "5M")},
	"limits.fuel-rate":  {"6M", `"6M"`, limit("fuel-rate", "6M")},
	"isolate":           {"team", `"team"`, func(s *v1alpha1.ControllerSpec) { s.Isolate = "team" }},
	"memo":              {"memory", `"memory"`, func(s *v1alpha1.ControllerSpec) { s.Memo = "memory" }},
	"history":           {"2Mi", `"2Mi"`, func(s *v1alpha1.ControllerSpec) { s.History = "2Mi" }},
	"config":            {"a=b", `{"a": "b"}`, func(s *v1alpha1.ControllerSpec) { s.Config = v1alpha1.Config{"a": "b"} }},
	"configFile":        {"/c.yaml", `"/c.yaml"`, func(s *v1alpha1.ControllerSpec) { s.ConfigFile = "/c.yaml" }},
	"name":              {"web", `"web"`, func(s *v1alpha1.ControllerSpec) { s.Name = "web" }},
	"module.controller": {"one", `"one"`, func(s *v1alpha1.ControllerSpec) { s.Module.Controller = "one" }},
	"drainTimeout":      {"3s", `"3s"`, func(s *v1alpha1.ControllerSpec) { s.DrainTimeout = "3s" }},
	"shardBy":           {"uid", `"uid"`, func(s *v1alpha1.ControllerSpec) { s.ShardBy = "uid" }},
	"module.watch":      {"false", "false", func(s *v1alpha1.ControllerSpec) { s.Module.Watch = new(false) }},
	"module.follow":     {"1m", `"1m0s"`, func(s *v1alpha1.ControllerSpec) { s.Module.Follow = "1m0s" }},
	"rollout.probation": {"0", `"0s"`, func(s *v1alpha1.ControllerSpec) { rollout(s).Probation = "0s" }},
	"rollout.autoRollback": {json: "false", set: func(s *v1alpha1.ControllerSpec) {
		rollout(s).AutoRollback = new(false)
	}},
	"rollout.reconcile":         {"none", `"none"`, func(s *v1alpha1.ControllerSpec) { rollout(s).Reconcile = v1alpha1.ReconcileNone }},
	"rollout.canary.percent":    {"10%", "10", func(s *v1alpha1.ControllerSpec) { canary(s).Percent = 10 }},
	"rollout.canary.namespaces": {"a,b", `["a", "b"]`, func(s *v1alpha1.ControllerSpec) { canary(s).Namespaces = []string{"a", "b"} }},
	"rollout.canary.selector":   {"tier=web", `{"matchLabels": {"tier": "web"}}`, func(s *v1alpha1.ControllerSpec) { canary(s).Selector = web }},
	"rollout.canary.time":       {"1h", `"1h0m0s"`, func(s *v1alpha1.ControllerSpec) { canary(s).Time = "1h0m0s" }},
	"rollout.allowMoreRights":   {"true", "true", func(s *v1alpha1.ControllerSpec) { rollout(s).AllowMoreRights = new(true) }},
	"grantFile":                 {"/g.yaml", `"/g.yaml"`, func(s *v1alpha1.ControllerSpec) { s.GrantFile = "/g.yaml" }},
	"grant.manifest":            {"true", "true", func(s *v1alpha1.ControllerSpec) { grants(s).Manifest = true }},
	"grant.capabilities": {json: `[{"resource": "pods", "verbs": ["get"]}]`, set: func(s *v1alpha1.ControllerSpec) {
		grants(s).Capabilities = []abi.Capability{{Resource: "pods", Verbs: []string{"get"}}}
	}},
	"grant.finalizers": {json: `["a.b/c"]`, set: func(s *v1alpha1.ControllerSpec) { grants(s).Finalizers = []string{"a.b/c"} }},
	"grant.digests":    {json: `["sha256:1"]`, set: func(s *v1alpha1.ControllerSpec) { grants(s).Digests = []string{"sha256:1"} }},
	"grant.signers":    {json: `["sha256:1"]`, set: func(s *v1alpha1.ControllerSpec) { grants(s).Signers = []string{"sha256:1"} }},
	"as":               {"jane", `"jane"`, func(s *v1alpha1.ControllerSpec) { s.As = "jane" }},
	"auditFile":        {"/a.yaml", `"/a.yaml"`, func(s *v1alpha1.ControllerSpec) { s.AuditFile = "/a.yaml" }},
	"mode":             {"server", `"DryRun"`, func(s *v1alpha1.ControllerSpec) { s.Mode = v1alpha1.ModeDryRun }},
}

// local lists the fields that a Reconciler does not have. They refer to the machine, or to a process
// that one user runs.
var local = []string{
	"allNamespaces", "as", "auditFile", "configFile", "debounce.max", "debounce.quiet", "drainTimeout", "grantFile", "history", "isolate", "memo", "module.file",
	"module.watch", "name", "shardBy", "triggerOn.signal", "triggerOn.stdin",
}

// TestFields_MeanTheSameInEachFrontEnd: a field gets the same value from its flag, a file, a Reconciler
// and Go. Only the local fields are missing in a Reconciler.
func TestFields_MeanTheSameInEachFrontEnd(t *testing.T) {
	var paths, noCRD []string
	for i := range Fields {
		f := &Fields[i]
		paths = append(paths, f.Path)
		x, ok := samples[f.Path]
		if !ok {
			t.Errorf("%s has no sample", f.Path)
			continue
		}
		t.Run(f.Path, func(t *testing.T) {
			want := &v1alpha1.ControllerSpec{}
			x.set(want)
			nested := x.json
			for _, key := range slices.Backward(strings.Split(f.Path, ".")) {
				nested = fmt.Sprintf("{%q: %s}", key, nested)
			}
			if f.Flag != "" {
				s, _ := parsed(t, "--"+f.Flag+"="+x.flag)
				same(t, "flag", want, s)
			}
			same(t, "file", want, inFile(t, nested))
			if s := inReconciler(t, nested); s == nil {
				noCRD = append(noCRD, f.Path)
			} else {
				same(t, "Reconciler", want, s)
			}
		})
	}
	slices.Sort(noCRD)
	if diff := cmp.Diff(local, noCRD); diff != "" {
		t.Errorf("fields that a Reconciler does not have (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(samples)), slices.Sorted(slices.Values(paths))); diff != "" {
		t.Errorf("samples, fields:\n%s", diff)
	}
}

func same(t *testing.T, how string, want, got *v1alpha1.ControllerSpec) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-Go +%s):\n%s", how, how, diff)
	}
}

// inFile returns the spec from a file with this field, without the fields that each file needs.
func inFile(t *testing.T, field string) *v1alpha1.ControllerSpec {
	t.Helper()
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: " + field + "\ncontrollers:\n- {name: x, module: y.wasm}\n"
	for key, rest := range map[string]string{"name": "module: y.wasm", "module": "name: x"} { // not allowed in defaults
		if strings.HasPrefix(field, `{"`+key+`"`) {
			text = "apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {module: y.wasm}\ncontrollers:\n- {" + rest + ", " + field[1:] + "\n"
		}
	}
	f, err := ParseFile("/dir/f.yaml", []byte(text))
	if f == nil {
		t.Fatalf("%v: %s", err, text)
	}
	s := &f.Controllers[0].Spec
	if s.Name == "x" {
		s.Name = ""
	}
	if s.Module.File == "/dir/y.wasm" {
		s.Module.File = ""
	}
	return s
}

// inReconciler returns the spec from a ClusterReconciler with this field, or nil if it cannot have the
// field.
func inReconciler(t *testing.T, field string) *v1alpha1.ControllerSpec {
	t.Helper()
	var r v1alpha1.ClusterReconcilerSpec
	d := json.NewDecoder(strings.NewReader(field))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil
	}
	return &v1alpha1.ControllerSpec{Module: v1alpha1.ControllerModule{ModuleSource: r.Module.ModuleSource}, Namespaces: r.Namespaces, CommonSpec: r.CommonSpec}
}

// TestFields_ErrorsAreInTheWordsOfTheFrontEnd: for the same mistake, an error about a flag names the
// flag, and an error about a file names the position and the path.
func TestFields_ErrorsAreInTheWordsOfTheFrontEnd(t *testing.T) {
	if _, err := parsed(t, "--probation=-1s"); err == nil || err.Error() != `--probation "-1s": must not be negative` {
		t.Error(err)
	}
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- {name: a, module: a.wasm}\n- name: b\n  module: b.wasm\n  rollout:\n    probation: -1s\n"
	if _, err := ParseFile("f.yaml", []byte(text)); err == nil || err.Error() != `f.yaml:8:16: controllers[1].rollout.probation "-1s": must not be negative` {
		t.Error(err)
	}
}

// An empty value, such as that of an unset variable, is refused: the flag would be ignored, and the process would do more
// than the user wanted. Only selectors may be empty.
func TestFields_AnEmptyValueIsRefused(t *testing.T) {
	for i := range Fields {
		f := &Fields[i]
		if f.Flag == "" {
			continue
		}
		cmd := &cobra.Command{}
		Bind(cmd, &v1alpha1.ControllerSpec{})
		err := cmd.ParseFlags([]string{"--" + f.Flag + "="})
		if selects := f.Flag == "selector" || f.Flag == "field-selector" || f.Flag == "canary-selector"; (err == nil) != selects {
			t.Errorf("--%s=: %v", f.Flag, err)
		}
		if f.Flag == "namespace" && !strings.Contains(err.Error(), "--all-namespaces") {
			t.Error(err)
		}
	}
}
