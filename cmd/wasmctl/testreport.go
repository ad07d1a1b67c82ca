package main

import (
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
)

// testReport tells what the cases came to: as they end, or at the end as JSON.
type testReport struct {
	o       *testOptions
	results []testResult
}

// testResult is a case in the JSON output.
type testResult struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
	// Result is pass, fail, updated or skip.
	Result string `json:"result"`
	// Diff is what was expected ("-") and what was seen ("+").
	Diff []string `json:"diff,omitempty"`
	// Milliseconds is how long the case took.
	Milliseconds int64 `json:"milliseconds,omitempty"`
	// Chaos is what --chaos found.
	Chaos *cases.ChaosReport `json:"chaos,omitempty"`
}

const (
	resultPass    = "pass"
	resultFail    = "fail"
	resultUpdated = "updated"
	resultSkip    = "skip"
)

// verdict tells one case.
func (r *testReport) verdict(f *cases.File, v *cases.Verdict) {
	res := testResult{File: f.Path, Line: v.Case.Line, Name: v.Case.Name, Result: resultPass, Diff: v.Diff, Milliseconds: v.Took.Milliseconds()}
	switch {
	case v.Failed() && r.o.update:
		res.Result = resultUpdated
	case v.Failed():
		res.Result = resultFail
	}
	r.add(&res)
	if res.Result != resultPass {
		r.lines(v.Diff)
	}
}

// chaos tells what a disturbed case came to.
func (r *testReport) chaos(f *cases.File, c *cases.Case, report *cases.ChaosReport) {
	res := testResult{File: f.Path, Line: c.Line, Name: c.Name, Result: resultPass, Chaos: report}
	switch {
	case report.Skipped != "":
		res.Result = resultSkip
	case len(report.Divergences) > 0:
		res.Result = resultFail
	}
	r.add(&res)
	for _, d := range report.Divergences {
		if d.Nth > 0 {
			r.say("    request %d, %s: %s", d.Nth, d.Call, d.Fault)
		}
		r.say("      does not converge: %s", d.Why)
		r.lines(d.Diff)
	}
}

// add notes a result, and shows it.
func (r *testReport) add(res *testResult) {
	r.results = append(r.results, *res)
	if res.Result == resultPass && !r.o.verbose {
		return
	}
	more := ""
	if res.Chaos != nil {
		more = fmt.Sprintf(" (%s of %s)", plural(res.Chaos.Tries, "disturbance"), plural(len(res.Chaos.Calls), "request"))
		if res.Chaos.Skipped != "" {
			more = ": " + res.Chaos.Skipped
		}
	}
	r.say("%s %s:%d: %s%s", res.Result, res.File, res.Line, res.Name, more)
}

func (r *testReport) lines(diff []string) {
	for _, line := range diff {
		r.say("    %s", line)
	}
}

// say writes a line, unless the output is JSON.
func (r *testReport) say(format string, args ...any) {
	if r.o.output == "text" {
		_, _ = fmt.Fprintf(r.o.streams.out, format+"\n", args...)
	}
}

// finish sums up. The error says that cases failed.
func (r *testReport) finish() error {
	counts := map[string]int{}
	tries := 0
	for _, res := range r.results {
		counts[res.Result]++
		if res.Chaos != nil {
			tries += res.Chaos.Tries
		}
	}
	if len(r.results) == 0 {
		return withCode(exitUsage, fmt.Errorf("--run %s: no case has such a name", r.o.run))
	}
	if r.o.output == "json" {
		if err := writeJSON(r.o.streams.out, r.results); err != nil {
			return err
		}
	} else {
		r.say("%s", sumUp(counts, tries))
	}
	if n := counts[resultFail]; n > 0 {
		return fmt.Errorf("%w: %d of %d", errCases, n, len(r.results))
	}
	return nil
}

func sumUp(counts map[string]int, tries int) string {
	parts := []string{plural(counts[resultPass], "case") + " passed"}
	for _, kind := range []struct{ result, text string }{{resultFail, "failed"}, {resultUpdated, "updated"}, {resultSkip, "skipped"}} {
		if n := counts[kind.result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.text))
		}
	}
	text := strings.Join(parts, ", ")
	if tries > 0 {
		text += "; " + plural(tries, "disturbance")
	}
	return text
}
