// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

var update = flag.Bool("update", false, "write the table of CASES.md again")

// TestCases_IDsAreUnique: an id names one case forever.
func TestCases_IDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || c.ID == "" || c.About == "" || c.check == nil || strings.ContainsAny(c.ID+c.About, "|`\n") {
			t.Errorf("case %q: used twice, or not whole", c.ID)
		}
		seen[c.ID] = true
		if c.Section < 1 || c.Section > 9 {
			t.Errorf("case %q: ABI.md has no section %d", c.ID, c.Section)
		}
	}
	if len(seen) < 300 {
		t.Errorf("%d cases", len(seen))
	}
}

// TestCases_CoverTheABI: each operation, each entry and each status of the host
// has a case.
func TestCases_CoverTheABI(t *testing.T) {
	var ids strings.Builder
	for _, c := range Cases() {
		ids.WriteString("\n" + c.ID)
	}
	has := func(what, prefix string) {
		if !strings.Contains(ids.String(), "\n"+prefix) {
			t.Errorf("%s has no case %s...", what, prefix)
		}
	}
	for _, op := range abi.Ops {
		has("operation", string(op)+".")
		if op != abi.OpConfigGet {
			has("operation", "denied."+string(op))
			has("operation", "old-host."+string(op))
		}
	}
	for s := abi.StatusInternal; s < abi.StatusOK; s++ {
		has("status", "status."+s.String())
	}
	for _, kind := range []abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput} {
		has("failure", "error_policy.kind."+string(kind))
	}
	for _, prefix := range []string{
		"entry.reconcile", "entry.finalize", "error_policy.", "map.", "filter.", "configure.", "validate.", "default.", "convert.", "describe", "buffer.",
		"log.", "log_level.", "clock.", "random.", "cancelled.", "budget.", "answer.",
	} {
		has("function", prefix)
	}
}

// TestCases_AGuestThatDoesNothingPassesNone: a case that such a guest passes could never fail. Its
// description of itself, and that its instances survive, are correct.
func TestCases_AGuestThatDoesNothingPassesNone(t *testing.T) {
	nothing, err := load.WithManifest(wasm.Empty, &abi.Manifest{For: &abi.Watch{Group: caseGroup, Version: "v1", Kind: caseKind}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Open(t.Context(), nothing, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range Cases() {
		if out := g.Try(t.Context(), c); out.Result != Fail && c.ID != "describe.known-keys" {
			t.Errorf("%s, of a guest that does nothing", out)
		}
	}
}

// TestOpen_RefusesOtherModules: a module that is not a guest of the kit is distinguished from a
// failing guest.
func TestOpen_RefusesOtherModules(t *testing.T) {
	if _, err := Open(t.Context(), wasm.Empty, ""); err == nil || !strings.Contains(err.Error(), "no guest of this kit") {
		t.Errorf("got %v", err)
	}
}

const tableStart = "<!-- The table is written by: go test ./host/conformance -run TestDocs -update -->\n"

// TestDocs_HasTheCases compares the table of CASES.md with the cases.
func TestDocs_HasTheCases(t *testing.T) {
	const file = "CASES.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(page), tableStart)
	if !ok {
		t.Fatalf("%s: no line %s", file, tableStart)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%d cases.\n\n| Case | ABI.md | What must hold |\n|---|---|---|\n", len(Cases()))
	for _, c := range Cases() {
		fmt.Fprintf(&table, "| `%s` | %d | %s |\n", c.ID, c.Section, c.About)
	}
	if after == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s: the table differs from the cases; write it again with: go test ./host/conformance -run TestDocs -update", file)
	}
	if err := os.WriteFile(file, []byte(before+tableStart+table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
