// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each .wasm equals its .wat, byte for byte, and each is in the table: a guest that no test loads
// proves nothing.
func TestGuests_AreBuiltFromTheirSourcesAndUsed(t *testing.T) {
	used := map[string]bool{}
	for _, a := range attacks() {
		used[a.guest] = true
	}
	sources, err := filepath.Glob("guests/*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no .wat files: %v", err)
	}
	tool, noTool := exec.LookPath("wat2wasm")
	for _, src := range sources {
		if name := strings.TrimSuffix(filepath.Base(src), ".wat"); !used[name] {
			t.Errorf("%s: no test uses it", src)
		}
		if noTool != nil {
			continue
		}
		out := filepath.Join(t.TempDir(), "out.wasm")
		if msg, err := exec.CommandContext(t.Context(), tool, "-o", out, src).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", src, err, msg)
			continue
		}
		want, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(strings.TrimSuffix(src, ".wat") + ".wasm"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: its .wasm is stale (%v): run build.sh", src, err)
		}
	}
	if noTool != nil {
		t.Log("SKIPPED: wat2wasm is not on PATH: the guests are not compared with their sources")
	}
}

var (
	hostileRow  = regexp.MustCompile(`Hostile \(([^)]*)\)`)
	hostileName = regexp.MustCompile("`([^`]+)`")
)

// docs/properties.md names attacks that show what stops a threat. A name may end in
// a star, for all that begin so.
func TestSecurity_EachNamedAttackExists(t *testing.T) {
	page, err := os.ReadFile("../../../docs/properties.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := hostileRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Errorf("%d rows: the page has another form than this test reads", len(rows))
	}
	all := attacks()
	for _, row := range rows {
		for _, name := range hostileName.FindAllStringSubmatch(row[1], -1) {
			begin, some := strings.CutSuffix(name[1], "*")
			if !slices.ContainsFunc(all, func(a attack) bool {
				return a.guest == begin || some && strings.HasPrefix(a.guest, begin)
			}) {
				t.Errorf("there is no attack %s", name[1])
			}
		}
	}
}
