// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Tests prints the results of cases: each one as it ends, or all at the end as JSON.
type Tests struct {
	Out    io.Writer
	AsJSON bool
	// Verbose also prints the cases that pass. Update means that observed results of the others are
	// written into their files.
	Verbose, Update bool
	// Cost adds a table with the costs of runs.
	Cost bool

	results []testResult
	costs   table
}

// errCases is the error of failed cases, which the output lists.
var errCases = errors.New("cases failed")

// testResult is a case in the JSON output.
type testResult struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
	// Result is pass, fail, updated or skip.
	Result string `json:"result"`
	// Diff lists expected ("-") and observed ("+") values.
	Diff []string `json:"diff,omitempty"`
	// Cost is the cost of the run, Budget has its limits, and Exceeded lists the exceeded ones.
	Cost     *cases.Cost   `json:"cost,omitempty"`
	Budget   *cases.Budget `json:"budget,omitempty"`
	Exceeded []string      `json:"exceeded,omitempty"`
	// Milliseconds is the duration of the case.
	Milliseconds int64 `json:"milliseconds,omitempty"`
	// Chaos is the result of --chaos.
	Chaos *cases.ChaosReport `json:"chaos,omitempty"`
}

const (
	resultPass    = "pass"
	resultFail    = "fail"
	resultUpdated = "updated"
	resultSkip    = "skip"
)

// Verdict prints one case.
func (r *Tests) Verdict(f *cases.File, v *cases.Verdict) {
	res := testResult{File: f.Path, Line: v.Case.Line, Name: v.Case.Name, Result: resultPass, Diff: v.Diff, Milliseconds: v.Took.Milliseconds()}
	switch {
	case r.Update && (v.Failed() || v.CostText(r.Cost) != ""):
		res.Result = resultUpdated
	case v.Failed():
		res.Result = resultFail
	}
	r.addCost(&res, v)
	r.add(&res)
	if res.Result == resultPass {
		return
	}
	r.lines(v.Diff)
	r.lines(res.Exceeded)
	if len(res.Exceeded) > 0 && !r.Update {
		r.report("    to allow it, run with --update, or write into the case: %s", v.CostText(false))
	}
}

// addCost adds the cost of the run.
func (r *Tests) addCost(res *testResult, v *cases.Verdict) {
	for _, i := range v.Exceeded() {
		res.Exceeded = append(res.Exceeded, i.String())
	}
	res.Cost = v.Cost
	if b := v.Case.Budget(); b != (cases.Budget{}) {
		res.Budget = &b
	}
	if !r.Cost || v.Cost == nil {
		return
	}
	row := []any{v.Case.Name}
	if r.costs.columns == nil {
		r.costs.columns = []column{{title: "CASE", minWidth: 20}}
		for _, i := range v.Items() {
			r.costs.columns = append(r.costs.columns, column{title: strings.ToUpper(i.Name), right: true})
		}
	}
	for _, i := range v.Items() {
		row = append(row, i.Share())
	}
	r.costs.row("", row...)
}

// Chaos prints the result of a disturbed case.
func (r *Tests) Chaos(f *cases.File, c *cases.Case, report *cases.ChaosReport) {
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
			r.report("    request %d, %s: %s", d.Nth, d.Call, d.Fault)
		}
		r.report("      does not converge: %s", d.Why)
		r.lines(d.Diff)
	}
}

// add records a result, and shows it.
func (r *Tests) add(res *testResult) {
	r.results = append(r.results, *res)
	if res.Result == resultPass && !r.Verbose {
		return
	}
	more := ""
	if res.Chaos != nil {
		more = fmt.Sprintf(" (%s of %s)", humanize.Plural(res.Chaos.Tries, "injected fault"), humanize.Plural(len(res.Chaos.Calls), "request"))
		if res.Chaos.Skipped != "" {
			more = ": " + res.Chaos.Skipped
		}
	}
	r.report("%s %s:%d: %s%s", res.Result, res.File, res.Line, res.Name, more)
}

func (r *Tests) lines(diff []string) {
	for _, line := range diff {
		r.report("    %s", line)
	}
}

// report writes a line, unless the output is JSON.
func (r *Tests) report(format string, args ...any) {
	if !r.AsJSON {
		_, _ = fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// Sum prints the totals. It returns an error if cases failed.
func (r *Tests) Sum() error {
	counts := map[string]int{}
	tries := 0
	for _, res := range r.results {
		counts[res.Result]++
		if res.Chaos != nil {
			tries += res.Chaos.Tries
		}
	}
	if len(r.costs.rows) > 0 {
		for _, line := range r.costs.render(0, false) {
			r.report("%s", line)
		}
	}
	r.report("%s", sumUp(counts, tries))
	if r.AsJSON {
		if err := JSON(r.Out, r.results); err != nil {
			return err
		}
	}
	if n := counts[resultFail]; n > 0 {
		return fmt.Errorf("%w: %d of %d", errCases, n, len(r.results))
	}
	return nil
}

// Empty reports whether no case was run.
func (r *Tests) Empty() bool { return len(r.results) == 0 }

func sumUp(counts map[string]int, tries int) string {
	parts := []string{humanize.Plural(counts[resultPass], "case") + " passed"}
	for _, kind := range []struct{ result, text string }{{resultFail, "failed"}, {resultUpdated, "updated"}, {resultSkip, "skipped"}} {
		if n := counts[kind.result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.text))
		}
	}
	text := strings.Join(parts, ", ")
	if tries > 0 {
		text += "; " + humanize.Plural(tries, "injected fault")
		if counts[resultFail] == 0 {
			text += ", all recovered"
		}
	}
	return text
}
