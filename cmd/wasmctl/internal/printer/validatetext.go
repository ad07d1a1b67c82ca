// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/wasmctl/wasmctl/host/conformance"
	"github.com/wasmctl/wasmctl/host/conformance/validate"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Validation is the result of wasmctl validate.
type Validation struct {
	*validate.Report
	// Cases are the cases of the kit that did not pass, and Passed is the number of the others.
	Cases  []conformance.Outcome `json:"cases,omitempty"`
	Passed int                   `json:"passed,omitempty"`
}

// Write writes the result as text or JSON.
func (v *Validation) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		return JSON(w, v)
	}
	var lines bytes.Buffer // complete lines, so that the terminal recognizes results
	t := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, c := range v.Checks {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", c.Verdict, c.ID, text.Line(c.Found)) // Flush returns the error
		if c.Next != "" {
			_, _ = fmt.Fprintf(t, "\t\t-> %s\n", text.Line(c.Next))
		}
	}
	for _, c := range v.Cases {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", c.Result, c.ID, text.Line(c.Detail))
	}
	if n := v.Passed + len(v.Cases); n > 0 {
		_, _ = fmt.Fprintf(t, "\n%d of %s pass\n", v.Passed, humanize.Plural(n, "case"))
	}
	_, _ = fmt.Fprintf(t, "\n%s: %d ok, %s, %s\n", humanize.Plural(len(v.Checks), "check"), v.Count(validate.OK),
		humanize.Plural(v.Count(validate.Warn), "warning"), humanize.Plural(v.Count(validate.Fail), "failure"))
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := w.Write(lines.Bytes())
	return err
}
