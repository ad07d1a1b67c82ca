package main

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/redact"
)

// rightsAudit writes what a module uses into a file, again whenever it uses something
// new: names of kinds, namespaces and fields, and no value.
type rightsAudit struct {
	path    string
	secrets *redact.Values // left out
	log     *slog.Logger
	learned *grant.Audit

	controller   string
	watches, own []abi.Capability // what running it takes, and what needs no capability

	mu sync.Mutex // held while the file is written
}

func (s *session) newAudit() *rightsAudit {
	needs := needsOf(s.kind, s.plan)
	needs.Capabilities = nil // what it asks for does not matter
	a := &rightsAudit{
		path: s.opts.rights.audit, secrets: &s.secrets, log: s.log.With("controller", s.name), learned: grant.NewAudit(s.plan.manifest.Capabilities),
		controller: s.name, watches: needs.Rules(), own: append(grant.OwnRights(needs.For), needs.FinalizerRules()...),
	}
	a.write()
	return a
}

// observe implements kubeapi.Observer.
func (a *rightsAudit) observe(_ context.Context, e *kubeapi.Exchange) {
	if a.learned.Learn(e) {
		a.write()
	}
}

// write replaces the file whole.
func (a *rightsAudit) write() {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.text()
	if err == nil {
		err = project.ReplaceFile(a.path, b)
	}
	if err != nil {
		a.log.Warn("the audit's file cannot be written", "file", a.path, "error", err.Error())
	}
}

// text is the grant, with the capabilities of the manifest as a comment before
// it.
func (a *rightsAudit) text() ([]byte, error) {
	used, hidden := withoutValues(a.learned.Rules(), a.secrets)
	g := grant.Document{Controller: a.controller, Capabilities: append(slices.Clone(a.watches), grant.Beyond(a.watches, used)...)}
	body, err := g.Marshal()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# What the module has used until now, as a grant (wasmctl run --grant).\n# Its manifest needs these capabilities:\n#\n")
	for line := range strings.SplitSeq(ruleLines(grant.Beyond(a.own, used)), "\n") {
		b.WriteString("# " + line + "\n")
	}
	if hidden {
		b.WriteString("# Fields whose path has a value of a Secret in it are left out.\n")
	}
	b.Write(body)
	return b.Bytes(), nil
}

// withoutValues leaves out the fields whose path has a value of a Secret in it,
// and says whether there are any. A rule that has no other is left out too:
// without fields it would be about all of them.
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
