// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// Report lists the parts of an operator that will not work as a module.
type Report struct {
	// Name is the name of the module.
	Name string `json:"name"`
	// Controllers are the controllers that the program's packages build.
	Controllers []Controller `json:"controllers"`
	// Capabilities are the rights that the manifest will request. Refused are rules that it cannot
	// request. Hint is advice about missing rights.
	Capabilities []abi.Capability `json:"capabilities"`
	Refused      []string         `json:"refused,omitempty"`
	Hint         string           `json:"hint,omitempty"`
	// Webhooks are the settings of the webhooks in markers and files.
	Webhooks []abi.Webhook `json:"webhooks,omitempty"`
	// Conversions are the types that convert objects.
	Conversions []Conversion `json:"conversions,omitempty"`
	// Inputs are the flags and variables that the project's code reads, by kind and name.
	Inputs []Input `json:"inputs,omitempty"`
	// Findings are the problems, by file and line.
	Findings []Finding `json:"findings"`
}

// Controller is a call of the builder, with the kinds in it.
type Controller struct {
	Place

	For     string   `json:"for,omitempty"`
	Owns    []string `json:"owns,omitempty"`
	Watches []string `json:"watches,omitempty"`
}

// Place is a position in the sources, relative to the project or in another module.
type Place struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Verdict is the severity of a finding.
type Verdict string

// The verdicts.
const (
	Fail Verdict = "fail" // the module does not build or start
	Warn Verdict = "warn" // it fails, or has no effect, when it is used
)

// Finding is a problem of an operator as a module.
type Finding struct {
	Place

	Verdict Verdict `json:"verdict"`
	// What describes the problem, and Do is the remedy.
	What string `json:"what"`
	Do   string `json:"do,omitempty"`
}

// Fails counts the findings that prevent the module from being built or started.
func (r *Report) Fails() int {
	n := 0
	for _, f := range r.Findings {
		if f.Verdict == Fail {
			n++
		}
	}
	return n
}

// Check reports the problems of the project without building the module. It compiles the module's
// packages, and searches the project's packages for features that a module does not have.
func (p *Project) Check(ctx context.Context, sdk SDK, stderr io.Writer) (*Report, error) {
	dir, err := os.MkdirTemp("", "wasmctl-import-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the go command resolves links
		return nil, err
	}
	stage, err := p.Stage(ctx, dir, sdk, stderr)
	if err != nil {
		return nil, err
	}
	c, err := stage.compile(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Name: p.Name(), Controllers: []Controller{}, Capabilities: stage.Capabilities, Refused: stage.Refused, Hint: stage.Hint, Webhooks: stage.found.Webhooks, Conversions: stage.conversions, Findings: []Finding{}}
	c.timeout = cmp.Or(p.Timeout, share.DefaultTimeout)
	c.check(r)
	r.Findings = append(r.Findings, c.size()...)
	r.Findings = append(r.Findings, p.version()...)
	r.Findings = append(r.Findings, p.ownBuild()...)
	place := func(a, b Place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(string(a.Verdict), string(b.Verdict)), place(a.Place, b.Place))
	})
	r.Findings = slices.Compact(r.Findings)
	r.Inputs = sortInputs(r.Inputs)
	slices.SortStableFunc(r.Controllers, func(a, b Controller) int { return place(a.Place, b.Place) })
	return r, nil
}
