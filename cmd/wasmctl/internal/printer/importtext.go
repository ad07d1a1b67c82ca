// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// Import returns the text of wasmctl import.
func Import(r *operator.Report) []byte {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%s\n\nControllers:\n", r.Name)
	for _, c := range r.Controllers {
		var parts []string
		if c.For != "" {
			parts = append(parts, "for "+c.For)
		}
		if len(c.Owns) > 0 {
			parts = append(parts, "owns "+strings.Join(c.Owns, ", "))
		}
		if len(c.Watches) > 0 {
			parts = append(parts, "watches "+strings.Join(c.Watches, ", "))
		}
		_, _ = fmt.Fprintf(&b, "  %s: %s\n", place(c.Place), strings.Join(parts, "; "))
	}
	if len(r.Controllers) == 0 {
		b.WriteString("  none found\n")
	}
	b.WriteString("\nRights that its manifest will request:\n")
	for _, right := range kubeapi.NewPolicy(r.Capabilities).Describe() {
		_, _ = fmt.Fprintf(&b, "  %s\n", right)
	}
	if r.Hint != "" {
		_, _ = fmt.Fprintf(&b, "  %s\n", indent(r.Hint, "  "))
	}
	if len(r.Webhooks) > 0 {
		b.WriteString("\nWebhooks, if main sets them up:\n")
	}
	for _, w := range r.Webhooks {
		_, _ = fmt.Fprintf(&b, "  %s: %s\n", w.Path, w.Type)
	}
	if len(r.Conversions) > 0 {
		b.WriteString("\nConversions, if main sets them up:\n")
	}
	for _, c := range r.Conversions {
		_, _ = fmt.Fprintf(&b, "  %s: %s to and from the hub %s\n", c.Kind, cmp.Or(strings.Join(c.Spokes, ", "), "no version"), cmp.Or(c.Hub, "(none was found)"))
	}
	inputs(&b, r.Inputs)
	if len(r.Findings) == 0 {
		b.WriteString("\nNo problems were found. Build it: wasmctl build\n")
		return []byte(b.String())
	}
	b.WriteString("\nProblems:\n")
	for _, f := range r.Findings {
		_, _ = fmt.Fprintf(&b, "  %s  %s: %s\n", f.Verdict, place(f.Place), indent(f.What, "        "))
		if f.Do != "" {
			_, _ = fmt.Fprintf(&b, "        -> %s\n", f.Do)
		}
	}
	return []byte(b.String())
}

// inputs writes what the program reads, as arguments of wasmctl build.
func inputs(b *strings.Builder, list []operator.Input) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\nInputs that the program reads, each with the argument of wasmctl build that sets it (wasmctl import --write lists them in wasmctl.yaml):\n")
	for _, in := range list {
		argument := "--env " + in.Name + "=VALUE"
		switch {
		case in.Kind == operator.InputFlag:
			argument = "-- --" + in.Name + "=VALUE"
		case in.Kind == operator.InputFile && strings.HasSuffix(in.Name, "/serviceaccount/namespace"):
			argument = "--namespace NAME"
		case in.Kind == operator.InputFile:
			argument = "--files " + in.Name + "=FILE"
		}
		_, _ = fmt.Fprintf(b, "  %s: %s", place(in.Place), argument)
		if in.Default != "" {
			_, _ = fmt.Fprintf(b, " (default %s)", in.Default)
		}
		b.WriteString("\n")
	}
}

// place returns the position of a finding. Without a file, it is about the whole program.
func place(p operator.Place) string {
	switch {
	case p.File == "":
		return "program"
	case p.Line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}
