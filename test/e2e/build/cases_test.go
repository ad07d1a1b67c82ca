// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestExamples_CasesHold runs the cases of each example, and then all of them
// with each request failing in each way.
func TestExamples_CasesHold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds all examples")
	}
	files, err := filepath.Glob("../../../examples/*/cases/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d files of cases, %v", len(files), err)
	}
	for _, path := range files {
		dir := filepath.Dir(filepath.Dir(path))
		if sources, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(sources) == 0 {
			continue // its own test builds it
		}
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			casesHold(t, e2e.Example(t, name), path)
		})
	}
}

// verdict is the output of wasmctl test -o json for one case.
type verdict struct {
	Name, Result   string
	Diff, Exceeded []string
	Chaos          *struct {
		Skipped     string
		Calls       []string
		Tries       int
		Divergences []struct {
			Nth              int
			Call, Fault, Why string
			Diff             []string
		}
	}
}

// casesHold runs the cases of a file with a module, and then with faults.
func casesHold(t *testing.T, module, file string) {
	t.Helper()
	for _, v := range verdicts(t, module, file) {
		if v.Result != "pass" {
			t.Errorf("%s: %s: %q, and costs too much: %q", v.Name, v.Result, v.Diff, v.Exceeded)
		}
	}
	for _, v := range verdicts(t, module, file, "--chaos") {
		if v.Chaos == nil {
			t.Errorf("%s: %s without a report", v.Name, v.Result)
			continue
		}
		for _, d := range v.Chaos.Divergences {
			t.Errorf("%s: %d %s: %s: %s %q", v.Name, d.Nth, d.Call, d.Fault, d.Why, d.Diff)
		}
		if v.Chaos.Skipped == "" && len(v.Chaos.Calls) > 0 && v.Chaos.Tries < 3*len(v.Chaos.Calls) {
			t.Errorf("%s: %d requests and only %d injected faults", v.Name, len(v.Chaos.Calls), v.Chaos.Tries)
		}
	}
}

// verdicts runs wasmctl test, which exits with 1 if a case fails.
func verdicts(t *testing.T, module, file string, args ...string) (list []verdict) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "wasmctl", append([]string{"test", module, file, "-o", "json", "--cache-dir", e2e.CodeDir}, args...)...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if unmarshal := json.Unmarshal(out, &list); unmarshal != nil || len(list) == 0 {
		t.Fatalf("%q: %v: %v: %s", cmd.Args, err, unmarshal, out)
	}
	return list
}
