// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	result = "../results/peers.json"
	page   = "../../docs/performance.md"
	charts = "../../docs/charts"
)

// TestReport_ThePageIsWhatTheRunGives compares docs/performance.md and its charts with the committed run.
// WASMCTL_UPDATE=1 writes them.
func TestReport_ThePageIsWhatTheRunGives(t *testing.T) {
	run, err := Load(result)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- make bench-peers: begin -->\n", "<!-- make bench-peers: end -->\n"
	text := read(t, page)
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the run", page)
	}
	same(t, page, before+begin+run.Markdown("charts")+end+after)
	stale, err := filepath.Glob(filepath.Join(charts, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, file := range stale {
		left[file] = true
	}
	for i := range run.Workloads {
		chart, err := run.Workloads[i].Chart()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(charts, run.Workloads[i].Name+".svg")
		delete(left, file)
		same(t, file, chart)
	}
	for file := range left {
		if os.Getenv("WASMCTL_UPDATE") == "" {
			t.Errorf("%s: no workload has this chart", file)
		} else if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// same compares a file with the expected content, or updates it.
func same(t *testing.T, path, want string) {
	t.Helper()
	if os.Getenv("WASMCTL_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
	if read(t, path) != want {
		t.Errorf("%s is not what %s gives: cd bench && WASMCTL_UPDATE=1 go test ./report", path, result)
	}
}

// TestTable_HasMediansAndRatiosOfRounds: a ratio is that of a round, and not one of medians.
func TestTable_HasMediansAndRatiosOfRounds(t *testing.T) {
	w := Workload{
		Metrics: []Metric{{Name: "time", Unit: "s"}, {Name: "heap"}},
		Rows: []Row{
			{"wasmctl", map[string][]float64{"time": {1, 2, 4}, "heap": {100}}},
			{"other", map[string][]float64{"time": {2, 8, 4}}},
		},
	}
	const want = `| | time, s | heap |
|---|---|---|
| wasmctl | **2.00**<br>1.00-4.00 | **100**<br>100-100 |
| other | **4.00**<br>×2.00 (1.00-4.00) | - |
`
	if got := w.table(); got != want {
		t.Errorf("got\n%s", got)
	}
	for v, want := range map[float64]string{0: "0.00", 12.34: "12.3", 999: "999", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v is shown as %s", v, got)
		}
	}
}

// TestWrap_KeepsAllWordsWithin120Columns of random texts.
func TestWrap_KeepsAllWordsWithin120Columns(t *testing.T) {
	for range 1000 {
		words := make([]string, rand.IntN(60))
		for i := range words {
			words[i] = strings.Repeat("é", 1+rand.IntN(20))
		}
		wrapped := wrap(strings.Join(words, " "))
		if got := strings.Fields(wrapped); !slices.Equal(got, words) {
			t.Fatalf("%q, of %q", got, words)
		}
		for line := range strings.Lines(wrapped) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
				t.Fatalf("%d columns: %s", n, line)
			}
		}
	}
}

// TestSpread_HalfOfTheValuesAreOnEachSide of the median, and none beyond the bounds.
func TestSpread_HalfOfTheValuesAreOnEachSide(t *testing.T) {
	for range 1000 {
		values := random(1 + rand.IntN(9))
		s := spreadOf(values)
		below, above := 0, 0
		for _, v := range values {
			if v < s.median {
				below++
			}
			if v > s.median {
				above++
			}
			if v < s.least || v > s.most {
				t.Fatalf("%v: %v", values, s)
			}
		}
		if below > len(values)/2 || above > len(values)/2 {
			t.Fatalf("%v: %d below %v, and %d above", values, below, s, above)
		}
	}
}

func random(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = rand.Float64() * 1e5
	}
	return values
}

// TestChart_IsXMLWhoseBarsFit checks charts of random runs, some of which lack figures.
func TestChart_IsXMLWhoseBarsFit(t *testing.T) {
	for range 200 {
		w := Workload{Title: "<&>"}
		for m := range rand.IntN(5) {
			w.Metrics = append(w.Metrics, Metric{Name: fmt.Sprint("m", m), Unit: "<", Chart: rand.IntN(2) == 0})
		}
		for range 1 + rand.IntN(7) {
			row := Row{"wasmctl & others", map[string][]float64{}}
			for _, m := range w.Metrics {
				row.Values[m.Name] = random(rand.IntN(4))
			}
			w.Rows = append(w.Rows, row)
		}
		for _, m := range w.Metrics {
			for _, b := range w.panel(m).Bars {
				if b.Least < 0 || b.Least > b.Width || b.Width > b.End || b.End > barWidth {
					t.Fatalf("%+v", b)
				}
			}
		}
		chart, err := w.Chart()
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(chart))
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%v:\n%s", err, chart)
		}
	}
}
