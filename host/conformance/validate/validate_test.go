// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// verdicts tries a module and returns the checks that are not ok, as "fail
// exports".
func verdicts(t *testing.T, module []byte, opts Options) (not []string, r *Report) {
	t.Helper()
	if opts.Calls == 0 {
		opts.Calls = 50
	}
	r, err := Module(t.Context(), module, opts)
	if err != nil {
		t.Fatal(err)
	}
	not = []string{}
	for _, c := range r.Checks {
		if c.Verdict != OK {
			not = append(not, string(c.Verdict)+" "+c.ID)
		}
		if c.ID == "" || c.Found == "" || (c.Next == "") != (c.Verdict == OK) {
			t.Errorf("%+v: a check has an id and says what was found; one that is not ok, and no other, what to do", c)
		}
	}
	return not, r
}

func withManifest(t *testing.T, module []byte, m *abi.Manifest) []byte {
	t.Helper()
	out, err := load.WithManifest(module, m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var aKind = &abi.Watch{Group: "example.com", Version: "v1", Kind: "Greeting"}

// TestModule_FindsWhatIsWrong: each guest breaks one thing, and that thing is
// found.
func TestModule_FindsWhatIsWrong(t *testing.T) {
	described := withManifest(t, wasm.Describe, &abi.Manifest{Name: "old", For: aKind})
	for _, tc := range []struct {
		name   string
		module []byte
		want   []string
	}{
		{"the least", wasm.Empty, []string{"warn manifest"}},
		{"the least, with a manifest", withManifest(t, wasm.Empty, &abi.Manifest{For: aKind}), nil},
		{"no kind", withManifest(t, wasm.Empty, &abi.Manifest{Name: "n"}), []string{"warn manifest"}},
		{"no module", []byte("hello"), []string{"fail binary"}},
		{"exports", wasm.BadExports, []string{"fail exports", "fail exports", "fail exports", "fail exports", "fail exports", "warn manifest"}},
		{"imports", wasm.BadImports, []string{"fail imports", "fail imports", "fail imports", "fail imports", "fail imports", "fail imports", "fail imports", "warn manifest"}},
		{"another ABI", wasm.ABI2, []string{"fail binary"}},
		{"manifest", withManifest(t, wasm.Empty, &abi.Manifest{For: aKind, Requires: []string{"teleport"}}), []string{"fail manifest"}},
		{"start code", wasm.StartTrap, []string{"warn manifest", "fail load"}},
		{"section is not describe", described, []string{"fail describe", "fail buffer", "fail reconcile.large"}},
		{"only describe", wasm.Describe, []string{"warn manifest", "fail buffer", "fail reconcile.large"}},
		{"a status that it traps for", withManifest(t, wasm.Picky, &abi.Manifest{For: aKind}), []string{"fail statuses"}},
		{"an answer that no host gives", withManifest(t, wasm.Trusting, &abi.Manifest{For: aKind}), []string{"warn statuses"}},
		{"a small buffer", withManifest(t, wasm.Modes, &abi.Manifest{For: aKind}), []string{"fail buffer", "fail reconcile.large", "warn reconcile.types"}},
		{"buffer", withManifest(t, wasm.Buffers, &abi.Manifest{For: aKind}), []string{"fail buffer", "fail reconcile.large"}},
		{"unknown import", withManifest(t, wasm.Calls, &abi.Manifest{For: aKind}), []string{"warn imports", "fail buffer", "fail reconcile.large", "warn map", "warn filter"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, r := verdicts(t, tc.module, Options{})
			if diff := cmp.Diff(append([]string{}, tc.want...), got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, r.Checks)
			}
		})
	}
}

// TestModule_FindsALeak, also one that has come to the limit.
func TestModule_FindsALeak(t *testing.T) {
	module := withManifest(t, wasm.Leak, &abi.Manifest{For: aKind})
	limited := withManifest(t, wasm.Leak, &abi.Manifest{For: aKind, Limits: &abi.Limits{Memory: 32 << 20}})
	for _, m := range [][]byte{module, limited} {
		if got, r := verdicts(t, m, Options{Calls: 1000}); !cmp.Equal(got, []string{"fail steady"}) || !strings.Contains(found(r, "steady"), "keeps growing") {
			t.Errorf("got %v: %s", got, found(r, "steady"))
		}
	}
}

// TestModule_ChecksOfARealModule tries an example whole, with and without an
// object of its kind, and a manifest that is older than the module.
func TestModule_ChecksOfARealModule(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds a module with the Go toolchain")
	}
	module := build(t, "../../../examples/dnsrecord")
	m, err := host.Describe(t.Context(), module, host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	got, r := verdicts(t, withManifest(t, module, m), Options{CacheDir: cache})
	if diff := cmp.Diff([]string{}, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, r.Checks)
	}
	if ids := ids(r); !strings.Contains(ids, "finalize finalize.again") || !strings.Contains(ids, "statuses old-host younger-host steady") {
		t.Errorf("checks: %s", ids)
	}
	more := *m
	more.Capabilities = append(slices.Clone(m.Capabilities), abi.Capability{Resource: "secrets", Verbs: []string{"get"}})
	more.Limits = &abi.Limits{Timeout: 60_000}
	if got, r := verdicts(t, withManifest(t, module, &more), Options{CacheDir: cache}); slices.Contains(got, "fail describe") {
		t.Errorf("with rights and limits of the build: %s", found(r, "describe"))
	}
	old := *m
	old.Capabilities = nil
	got, r = verdicts(t, withManifest(t, module, &old), Options{CacheDir: cache})
	if diff := cmp.Diff([]string{"fail describe", "warn rights"}, got); diff != "" || !strings.Contains(found(r, "describe"), "capabilities differ") {
		t.Errorf("(-want +got):\n%s\n%s", diff, found(r, "describe"))
	}
	if missing := found(r, "rights"); !strings.Contains(missing, " of ConfigMap") {
		t.Errorf("rights: %s", missing)
	}
}

func ids(r *Report) string {
	var out []string
	for _, c := range r.Checks {
		out = append(out, c.ID)
	}
	return strings.Join(out, " ")
}

func found(r *Report, id string) string {
	for _, c := range r.Checks {
		if c.ID == id {
			return c.Found
		}
	}
	return ""
}

func build(t *testing.T, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "module.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestModule_ObjectMustBeOfTheKind: another object would not be reconciled.
func TestModule_ObjectMustBeOfTheKind(t *testing.T) {
	module := withManifest(t, wasm.Empty, &abi.Manifest{For: aKind})
	for want, obj := range map[string]map[string]any{
		`of "Other" none is a "Greeting"`: {"apiVersion": "v1", "kind": "Other", "metadata": map[string]any{"name": "a"}},
		"no metadata.name":                {"kind": "Greeting"},
		"Go type chan int":                {"kind": "Greeting", "metadata": make(chan int)},
	} {
		if _, err := Module(t.Context(), module, Options{Objects: []map[string]any{obj}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if not, _ := verdicts(t, module, Options{Objects: []map[string]any{
		{"kind": "Namespace"}, {"kind": "Greeting", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"n": 3.0, "s": []any{"x", nil}}},
	}}); len(not) > 0 {
		t.Errorf("got %v", not)
	}
}

// TestModule_EndOfContextIsAnError, and not the module's fault.
func TestModule_EndOfContextIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Module(ctx, wasm.Empty, Options{}); err == nil {
		t.Errorf("got %+v", r)
	}
}

// TestAllowed_FollowsTheManifest: the rights of every module, those of a capability, and missing
// rights.
func TestAllowed_FollowsTheManifest(t *testing.T) {
	m := &abi.Manifest{For: aKind, Capabilities: []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"get"}},
		{Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"*"}},
		{Group: "networking.k8s.io", Resource: "networkpolicies", Verbs: []string{"list"}},
	}}
	for n, want := range map[need]bool{
		{verb: "get", group: "example.com", kind: "Greeting"}:                          true,
		{verb: "patch", group: "example.com", kind: "Greeting", subresource: "status"}: true,
		{verb: "patch", group: "example.com", kind: "Greeting"}:                        false,
		{verb: "get", group: "example.com", kind: "Greeting", subresource: "scale"}:    false,
		{verb: "get", kind: "ConfigMap"}:                                               true,
		{verb: "create", kind: "ConfigMap"}:                                            false,
		{verb: "get", group: "other", kind: "ConfigMap"}:                               false,
		{verb: "update", group: "apps", kind: "Deployment", subresource: "scale"}:      true,
		{verb: "update", group: "apps", kind: "Deployment"}:                            false,
		{verb: "list", group: "networking.k8s.io", kind: "NetworkPolicy"}:              true,
	} {
		if got := allowed(m, n); got != want {
			t.Errorf("%s: got %v, want %v", n, got, want)
		}
	}
}

// TestYounger_SaysTheSame: the additions are unknown keys, and nothing is lost.
func TestYounger_SaysTheSame(t *testing.T) {
	msg := abi.AppendRequest(nil, &abi.Request{ID: "r", Controller: "c", Attempt: 1, Key: key, Object: encode(object{"a": int64(1)})})
	want, err := abi.DecodeObject(msg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := abi.DecodeObject(younger(msg))
	if err != nil || bytes.Equal(younger(msg), msg) {
		t.Fatalf("%v", err)
	}
	delete(got, "weather")
	delete(got, "aaa")
	delete(got, "reason")
	delete(want, "reason")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestModule_WarnsOfAFinalizerWithoutADomain, which the API server takes for custom
// resources only.
func TestModule_WarnsOfAFinalizerWithoutADomain(t *testing.T) {
	for finalizer, want := range map[string]Verdict{"cleanup": Warn, "example.com/cleanup": OK} {
		e := &exam{info: &load.Info{Manifest: &abi.Manifest{For: aKind, Finalizer: finalizer}}, report: &Report{}}
		if e.goodManifest(); e.report.Checks[0].Verdict != want {
			t.Errorf("%s: %+v", finalizer, e.report.Checks)
		}
	}
}
