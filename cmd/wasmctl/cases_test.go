package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
)

// TestExamples_CasesHold runs the cases of each example, and then all of them
// with each request failing in each way.
func TestExamples_CasesHold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds all examples")
	}
	files, err := filepath.Glob("../../examples/*/cases/*.yaml")
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
			f, err := cases.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			wasm, err := os.ReadFile(exampleWasm(t, name))
			if err != nil {
				t.Fatal(err)
			}
			suite := newSuite(wasm, name)
			for _, c := range f.Cases {
				t.Run(c.Name, func(t *testing.T) { casesHold(t, suite, c) })
			}
		})
	}
}

// newSuite has the cache of the commands, and their key: with another one, each would
// compile again what the other has compiled.
func newSuite(wasm []byte, name string) *cases.Suite {
	s := &cases.Suite{Wasm: wasm, Name: name}
	s.CacheDir, s.CacheKey = flags.CodeCache(compiledModules)
	return s
}

func casesHold(t *testing.T, suite *cases.Suite, c *cases.Case) {
	v, err := suite.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range v.Diff {
		t.Errorf("%s", line)
	}
	for _, over := range v.Exceeded() {
		t.Error(over.String())
	}
	report, err := suite.Chaos(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Divergences {
		t.Errorf("%d %s: %s: %s %q", d.Nth, d.Call, d.Fault, d.Why, d.Diff)
	}
	if report.Skipped == "" && len(report.Calls) > 0 && report.Tries < 3*len(report.Calls) {
		t.Errorf("%d requests and only %d injected faults", len(report.Calls), report.Tries)
	}
}
