// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/diff"
)

// Output writes v as JSON or YAML, or the result of text.
func Output(w io.Writer, format string, v any, text func() []byte) error {
	var b []byte
	var err error
	switch format {
	case "json":
		return JSON(w, v)
	case "yaml":
		b, err = marshalYAML(v)
	default:
		b = text()
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// marshalYAML is yaml.Marshal for values with control characters, which yaml.Marshal refuses
// without escapes.
func marshalYAML(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(text.AppendPrintable(nil, b))
}

// JSON writes a value as indented JSON and a line break.
func JSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// Shadow prints the results of a shadow. As text, it prints only runs that differ.
type Shadow struct {
	Out    io.Writer
	AsJSON bool
}

// Run prints a run that was compared.
func (p Shadow) Run(r admin.Shadowed) error {
	if p.AsJSON {
		return json.NewEncoder(p.Out).Encode(map[string]any{"run": r})
	}
	if len(r.Differences) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (reconcile %s)\n", r.Object, r.ReconcileID)
	for i := range r.Differences {
		b.WriteString("  " + Difference(&r.Differences[i]) + "\n")
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}

// Summary prints the result of all runs.
func (p Shadow) Summary(sum *shadow.Summary) error {
	if p.AsJSON {
		return json.NewEncoder(p.Out).Encode(map[string]any{"summary": sum})
	}
	_, err := fmt.Fprintln(p.Out, sum)
	return err
}

// Difference returns a difference as text. It begins with + if only the other module did this, and with -
// if only the live one did.
func Difference(d *shadow.Difference) string {
	if d.Of != shadow.OfWrite {
		return diff.Line(d.Of, textsOf(d.Live), textsOf(d.Shadow))
	}
	what := d.Write
	if d.Path != "" {
		what += " " + d.Path
	}
	live, other := diff.Values(d.Live, d.Shadow, diff.Bounds{})
	return diff.Line(what, live, other)
}

// textsOf returns an action or an error in one line, which may be truncated. The JSON output has all of
// it.
func textsOf(v any) string {
	const limit = 200
	if v == nil {
		return ""
	}
	return text.Clip(strings.ReplaceAll(fmt.Sprint(v), "\n", `\n`), limit)
}
