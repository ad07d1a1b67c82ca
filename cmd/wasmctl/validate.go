package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/host/conformance"
	"github.com/wasmctl/wasmctl/host/conformance/validate"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	module  string
	output  string
	object  string
	config  map[string]string
	calls   int
	cases   bool
	streams streams
}

func newCmdValidate(s streams, runF func(context.Context, *validateOptions) error) *cobra.Command {
	o := &validateOptions{streams: s}
	formats := outputFormats[:2]
	cmd := &cobra.Command{
		Use:   "validate MODULE",
		Short: "Try a module without a cluster, and say what is wrong with it",
		Long: `Looks at a module's exports, imports, memory and manifest, loads it, and calls it as a host does: with requests of all
sizes, with objects that are empty, large and odd, with an API that fails in every way, on an older and on a younger host, and
10,000 times. Each check is ok, a warning or a failure, and says what to do. Nothing leaves the sandbox.

Without --object the module is given objects of its kind with an empty spec, and shows less of itself. Exits with 3 if a check
fails. What the checks are stands in docs/conformance.md.`,
		Example: `  wasmctl validate module.wasm --object sample.yaml
  wasmctl validate module.wasm -o json | jq '.checks[] | select(.verdict != "ok")'`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			switch {
			case !slices.Contains(formats, o.output):
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", o.output, strings.Join(formats, ", ")))
			case o.calls < 1:
				return usageError(cmd, fmt.Errorf("--calls %d: want 1 or more", o.calls))
			}
			return runF(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "text", strings.Join(formats, ", "))
	f.StringVar(&o.object, "object", "", "file with an object of the kind that the module reconciles, among others (YAML or JSON)")
	f.StringToStringVar(&o.config, "config", nil, "settings of the module, KEY=VALUE")
	f.IntVar(&o.calls, "calls", validate.DefaultCalls, "runs of the check that looks for growing memory")
	f.BoolVar(&o.cases, "cases", false, "run the cases of host/conformance, for a module that is a guest of that kit")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// validated is what -o json shows.
type validated struct {
	*validate.Report
	// Cases are those of the kit that did not pass; Passed is how many did.
	Cases  []conformance.Outcome `json:"cases,omitempty"`
	Passed int                   `json:"passed,omitempty"`
}

func runValidate(ctx context.Context, o *validateOptions) error {
	wasm, err := readModule(o.module)
	if err != nil {
		return err
	}
	objects, err := readObjects(o.object)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("--object %s: %w", o.object, err))
	}
	cache, err := os.MkdirTemp("", "wasmctl-validate-") // several hosts load the module
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	out := validated{}
	opts := validate.Options{Name: moduleName(o.module), Objects: objects, Settings: o.config, Calls: o.calls, CacheDir: cache}
	if out.Report, err = validate.Module(ctx, wasm, opts); err != nil {
		return withCode(exitUsage, fmt.Errorf("module[%s]: %w", o.module, err))
	}
	failed := out.Count(validate.Fail)
	if o.cases && failed == 0 {
		if err := out.runCases(ctx, wasm, cache); err != nil {
			return withCode(exitModule, err)
		}
		failed += len(out.Cases)
	}
	if err := out.write(o.streams.out, o.output); err != nil {
		return err
	}
	if failed > 0 {
		return withCode(exitModule, fmt.Errorf("module[%s]: %s", o.module, plural(failed, "failure")))
	}
	return nil
}

// readObjects reads all documents of a file; without a name there are none.
func readObjects(path string) ([]map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	var out []map[string]any
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var obj map[string]any
		if err := yaml.Unmarshal(doc, &obj, wholeNumbers); err != nil {
			return nil, err
		}
		if len(obj) > 0 {
			out = append(out, toWire(obj).(map[string]any)) //nolint:forcetypeassert // a map stays one
		}
	}
	if len(out) == 0 {
		return nil, errors.New("holds no object")
	}
	return out, nil
}

// wholeNumbers keeps integers apart from floats.
func wholeNumbers(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// toWire turns numbers as they were written into those of messages.
func toWire(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = toWire(e)
		}
	case []any:
		for i, e := range v {
			v[i] = toWire(e)
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64() // the decoder has read it as a number
		return f
	}
	return v
}

// runCases runs the cases of the kit, and keeps those that do not pass. What an
// SDK has no function for is no failure.
func (v *validated) runCases(ctx context.Context, wasm []byte, cache string) error {
	g, err := conformance.Open(ctx, wasm, cache)
	if err != nil {
		return err
	}
	for _, c := range conformance.Cases() {
		switch out := g.Try(ctx, c); out.Result {
		case conformance.Fail:
			v.Cases = append(v.Cases, out)
		case conformance.Pass:
			v.Passed++
		case conformance.Lacks:
		}
	}
	return g.Close(ctx)
}

func (v *validated) write(w io.Writer, format string) error {
	if format == "json" {
		return writeJSON(w, v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range v.Checks {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", c.Verdict, c.ID, c.Found) // Flush returns the error
		if c.Next != "" {
			_, _ = fmt.Fprintf(t, "\t\t-> %s\n", c.Next)
		}
	}
	for _, c := range v.Cases {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", c.Result, c.ID, c.Detail)
	}
	if n := v.Passed + len(v.Cases); n > 0 {
		_, _ = fmt.Fprintf(t, "\n%d of %s pass\n", v.Passed, plural(n, "case"))
	}
	_, _ = fmt.Fprintf(t, "\n%s: %d ok, %s, %s\n", plural(len(v.Checks), "check"), v.Count(validate.OK),
		plural(v.Count(validate.Warn), "warning"), plural(v.Count(validate.Fail), "failure"))
	return t.Flush()
}
