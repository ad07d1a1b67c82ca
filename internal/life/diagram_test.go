// SPDX-License-Identifier: Apache-2.0

package life

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// page has the diagram and the table between these marks.
const (
	page       = "../../docs/lifecycle.md"
	begin, end = "<!-- generated from internal/life/table.go -->\n", "<!-- end -->\n"
)

// diagram returns the table as a Mermaid diagram of the phases, and the table in full.
func diagram() string {
	var b strings.Builder
	b.WriteString("\n```mermaid\nstateDiagram-v2\n    [*] --> Idle\n")
	labels := map[string][]string{} // by arrow
	var arrows []string
	for _, t := range table {
		for _, from := range t.from {
			if t.to == "" || t.to == from {
				continue
			}
			arrow := fmt.Sprintf("    %s --> %s", from, t.to)
			if labels[arrow] == nil {
				arrows = append(arrows, arrow)
			}
			if !slices.Contains(labels[arrow], string(t.on)) {
				labels[arrow] = append(labels[arrow], string(t.on))
			}
		}
	}
	for _, arrow := range arrows {
		fmt.Fprintf(&b, "%s : %s\n", arrow, strings.Join(labels[arrow], ", "))
	}
	b.WriteString("    Stopped --> [*]\n```\n\n| In | On | If | Next |\n|---|---|---|---|\n")
	for _, t := range table {
		var from []string
		for _, p := range t.from {
			from = append(from, string(p))
		}
		to := string(t.to)
		if to == "" {
			to = "the same"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(from, ", "), t.on, t.when, to)
	}
	b.WriteString("\n")
	return b.String()
}

// TestTable_IsWhatThePageShows: WASMCTL_UPDATE=1 writes the page.
func TestTable_IsWhatThePageShows(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(content), begin)
	shown, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no block that begins with %q", page, begin)
	}
	want := diagram()
	if shown == want {
		return
	}
	if os.Getenv("WASMCTL_UPDATE") == "" {
		t.Fatalf("%s does not show the table: run WASMCTL_UPDATE=1 go test ./internal/life", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
