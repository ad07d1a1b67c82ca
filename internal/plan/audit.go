// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/redact"
)

// Audit learns which rights a module uses. It records names of kinds, namespaces and
// fields, but no values. It is safe for concurrent use.
type Audit struct {
	controller   string
	watches, own []abi.Capability // the watches that running the module needs, and the rights that need no capability
	finalizers   []string         // finalizers that the grant must name
	learned      *grant.Audit
	secrets      *redact.Values // are omitted

	mu     sync.Mutex              // held while report is called
	report func(text []byte) error // receives the least grant
	log    *slog.Logger
}

// NewAudit returns an Audit of the module of a plan. It calls report with the least grant
// that allows the rights that the module has used, immediately and whenever that grows.
func (p *Planner) NewAudit(kind Watched, of *Plan, secrets *redact.Values, report func(text []byte) error) *Audit {
	needs := of.needs(kind)
	needs.Capabilities = nil // the requested capabilities do not matter
	a := &Audit{
		controller: p.Controller, watches: needs.Rules(), own: append(grant.OwnRights(needs.For), needs.FinalizerRules()...),
		learned: grant.NewAudit(of.Manifest.Capabilities), secrets: secrets, report: report, log: p.Log,
	}
	if f := of.Manifest.Finalizer; f != "" && !needs.OwnFinalizer(f) {
		a.finalizers = []string{f}
	}
	a.write()
	return a
}

// Requested implements kubeapi.Observer.
func (a *Audit) Requested(_ context.Context, e *kubeapi.Exchange) {
	if a.learned.Learn(e) {
		a.write()
	}
}

func (a *Audit) write() {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.text()
	if err == nil {
		err = a.report(b)
	}
	if err != nil {
		a.log.Warn("cannot write the audit file", "error", err.Error())
	}
}

// text returns the grant, preceded by a comment with the capabilities for the manifest.
func (a *Audit) text() ([]byte, error) {
	used, hidden := withoutValues(a.learned.Rules(), a.secrets)
	g := grant.Document{Controllers: []string{a.controller}, Capabilities: append(slices.Clone(a.watches), grant.Beyond(a.watches, used)...), Finalizers: a.finalizers}
	body, err := g.Marshal()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# The capabilities that the module has used so far, as a grant.\n# Its manifest needs these capabilities:\n#\n")
	for line := range strings.SplitSeq(RuleLines(grant.Beyond(a.own, used)), "\n") {
		b.WriteString("# " + line + "\n")
	}
	if hidden {
		b.WriteString("# Fields whose path contains a value of a Secret are omitted.\n")
	}
	b.Write(body)
	return b.Bytes(), nil
}

// withoutValues removes the fields whose path contains a value of a Secret, and reports
// whether there were any. It also removes a rule without remaining fields, because a rule
// without fields allows all of them.
func withoutValues(rules []abi.Capability, secrets *redact.Values) (kept []abi.Capability, hidden bool) {
	for _, rule := range rules {
		fields := slices.DeleteFunc(slices.Clone(rule.Fields), func(path string) bool { return secrets.Text(path) != path })
		hidden = hidden || len(fields) < len(rule.Fields)
		if len(fields) > 0 || len(rule.Fields) == 0 {
			rule.Fields = fields
			kept = append(kept, rule)
		}
	}
	return kept, hidden
}
