// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// Bounds of an audit in a status.
const (
	maxRules  = 200
	maxWrites = 20
	maxWrite  = 1 << 10 // bytes
)

// audited makes the options report the requests and writes of the module, if the mode is audit.
func (u *unit) audited(o wasmctl.ControllerOptions) wasmctl.ControllerOptions {
	if o.Mode == v1alpha1.ModeAudit {
		o.Audit, o.OnWrite = u.uses, u.wouldWrite
	}
	return o
}

// uses records the minimal grant for the module's requests so far.
func (u *unit) uses(grant []byte) error {
	var g struct {
		Capabilities []abi.Capability `json:"capabilities"`
		Finalizers   []string         `json:"finalizers"`
	}
	if err := yaml.Unmarshal(grant, &g); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.audit.Capabilities, u.audit.Finalizers = g.Capabilities[:min(len(g.Capabilities), maxRules)], g.Finalizers
	return nil
}

// wouldWrite records a write of a dry run, each distinct one once.
func (u *unit) wouldWrite(w wasmctl.Write) {
	if w.Event != "" || w.Effect == history.Unchanged {
		return
	}
	w.DryRun = false // the text does not repeat it: all writes are dry runs
	var b strings.Builder
	printer.Operation(&b, "", &w.Operation, "")
	what, changes, _ := strings.Cut(strings.TrimSpace(b.String()), "\n")
	lines := []string{strings.Join(strings.Fields(what), " ")}
	for line := range strings.Lines(changes) {
		lines = append(lines, strings.TrimSpace(line))
	}
	write := text.Clip(strings.Join(lines, "\n"), maxWrite-len("..."))
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Contains(u.audit.Writes, write) {
		return
	}
	u.audit.Writes = append(u.audit.Writes[max(0, len(u.audit.Writes)-maxWrites+1):], write)
}

// auditOf returns the recorded requests and writes in audit mode. In other modes, it resets them and
// returns nil.
func (u *unit) auditOf(o *reconciler) *v1alpha1.Audit {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o.spec.Mode != v1alpha1.ModeAudit {
		u.audit = v1alpha1.Audit{}
		return nil
	}
	a := u.audit
	a.Writes = slices.Clone(a.Writes)
	return &a
}
