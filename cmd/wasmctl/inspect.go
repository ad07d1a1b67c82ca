package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
)

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	module  string
	output  string
	streams streams
}

// outputFormats are the values of -o.
var outputFormats = []string{"text", "json", "yaml"}

func newCmdInspect(s streams, runF func(context.Context, *inspectOptions) error) *cobra.Command {
	o := &inspectOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show what is in a module, without running any of it",
		Long: `Shows digest, size, ABI, toolchain, exports, imports, memory and manifest of a module, and each problem
that would stop it from loading. Exits with 3 if there is one. Nothing of the module is run.`,
		Example: `  wasmctl inspect module.wasm
  wasmctl inspect module.wasm -o json | jq .manifest.capabilities`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			if !slices.Contains(outputFormats, o.output) {
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", o.output, strings.Join(outputFormats, ", ")))
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", strings.Join(outputFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runInspect(ctx context.Context, o *inspectOptions) error {
	wasm, err := readModule(o.module)
	if err != nil {
		return err
	}
	info := host.Inspect(ctx, wasm)
	if err := writeOutput(o.streams.out, o.output, info, func() []byte { return infoText(info) }); err != nil {
		return err
	}
	if n := len(info.Problems); n > 0 {
		return withCode(exitModule, fmt.Errorf("module[%s]: cannot be loaded: %s", o.module, plural(n, "problem")))
	}
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func infoText(info *host.Info) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) // to memory
	}
	row("Digest:", "%s", info.Digest)
	row("Size:", "%s", bytesText(info.Size))
	row("ABI:", "%s", abiText(info.ABI))
	row("Toolchain:", "%s", orNone(info.Toolchain))
	if info.Memory != nil {
		row("Memory:", "%s at start, at most %s", bytesText(info.Memory.Min), limitText(info.Memory.Max))
	}
	for i, e := range info.Exports {
		row(head(i, "Exports:"), "%s", strings.TrimSpace(e.Name+" "+typeOrKind(e.Kind, e.Type)))
	}
	for i, e := range info.Imports {
		row(head(i, "Imports:"), "%s", strings.TrimSpace(e.Module+"."+e.Name+" "+typeOrKind(e.Kind, e.Type)))
	}
	writeManifest(row, info)
	for i, p := range info.Problems {
		row(head(i, "Problems:"), "%s", p)
	}
	if len(info.Problems) == 0 {
		row("Problems:", "none: it can be loaded")
	}
	_ = t.Flush() // to memory
	return b.Bytes()
}

func writeManifest(row func(string, string, ...any), info *host.Info) {
	m := info.Manifest
	if m == nil {
		row("Manifest:", "none in the file%s", describeHint(info))
		return
	}
	b, err := yaml.Marshal(m)
	if err != nil {
		b = []byte(err.Error())
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		row(head(i, "Manifest:"), "%s", line)
	}
	if len(info.UnknownKeys) > 0 {
		row("Unknown keys:", "%s (ignored)", strings.Join(info.UnknownKeys, ", "))
	}
}

// describeHint says how to get the manifest of a module that only tells it
// when it is run.
func describeHint(info *host.Info) string {
	has := func(e host.Export) bool { return e.Name == abi.ExportDescribe }
	if slices.ContainsFunc(info.Exports, has) {
		return "; the module can tell it: wasmctl annotate writes it into the file"
	}
	return ""
}

func head(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

func typeOrKind(kind, typ string) string {
	if typ != "" {
		return typ
	}
	return "(" + kind + ")"
}

func abiText(v int) string {
	if v == 0 {
		return "none declared"
	}
	return fmt.Sprint(v)
}

func orNone(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}

func limitText(n int64) string {
	if n == 0 {
		return "what --memory allows"
	}
	return bytesText(n)
}
