// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/host/conformance"
	"github.com/wasmctl/wasmctl/host/conformance/validate"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	module   string
	registry flags.Registry
	output   string
	objects  []string // files
	which    string   // the controller, if the module has several
	config   map[string]string
	calls    int
	cases    bool
	streams  streams
}

func newCmdValidate(s streams) *cobra.Command {
	o := &validateOptions{streams: s, registry: flags.Registry{Progress: s.progress}}
	cmd := &cobra.Command{
		Use:   "validate MODULE",
		Short: "Check a module without a cluster",
		Long: `Checks the exports, imports, memory and manifest of a module, loads it, and calls it as a host does: with requests of all sizes,
with empty, large and unusual objects, with an API that fails in every way, on an older and on a newer host, and 10,000 times. Each
check passes, warns or fails, and tells you what to do. Nothing leaves the sandbox.

Without --object, the checks use objects with an empty spec and cover less of the module. Exits with 3 if a check fails.
docs/conformance.md describes the checks.`,
		Example: `  wasmctl validate module.wasm --object sample.yaml
  wasmctl validate module.wasm -o json | jq '.checks[] | select(.verdict != "ok")'`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			if o.calls < 1 {
				return usageError(cmd, fmt.Errorf("--calls %d: want 1 or more", o.calls))
			}
			return runValidate(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.registry.Bind(f)
	outputFlag(cmd, &o.output, "text", "json")
	f.StringArrayVar(&o.objects, "object", nil, "Validate with the objects in this YAML or JSON `file`; for webhooks and conversions, it may have CustomResourceDefinitions; repeatable")
	f.StringVar(&o.which, "controller", "", "Validate this `controller` of a module that has several")
	f.StringToStringVar(&o.config, "config", nil, "Set settings of the module as KEY=VALUE")
	f.IntVar(&o.calls, "calls", validate.DefaultCalls, "Run the memory check this many times")
	f.BoolVar(&o.cases, "cases", false, "Run the conformance suite; the module must be one of its guests")
	return cmd
}

func runValidate(ctx context.Context, o *validateOptions) error {
	wasm, err := o.registry.Read(ctx, o.registry.Open(o.module))
	if err != nil {
		return err
	}
	var objects []map[string]any
	for _, file := range o.objects {
		read, err := cases.ReadObjects(file)
		if err != nil {
			return failure.Usage.Wrap(fmt.Errorf("--object %s: %w", file, err))
		}
		objects = append(objects, read...)
	}
	cache, err := os.MkdirTemp("", "wasmctl-validate-") // several hosts load the module
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	out := printer.Validation{}
	if all := namesIn(load.Outline(wasm).Controllers); len(all) > 0 && !slices.Contains(all, o.which) {
		return failure.Usage.Wrap(fmt.Errorf("--controller %q: the module has %d: want one of %s", o.which, len(all), strings.Join(all, ", ")))
	}
	opts := validate.Options{Name: flags.ModuleName(o.module), Controller: o.which, Objects: objects, Settings: o.config, Calls: o.calls, CacheDir: cache}
	defer o.streams.progress.Start("validating " + o.module).End()
	if out.Report, err = validate.Module(ctx, wasm, opts); err != nil {
		return failure.Usage.Wrap(fmt.Errorf("module[%s]: %w", o.module, err))
	}
	failed := out.Count(validate.Fail)
	if o.cases && failed == 0 {
		if err := runKit(ctx, &out, wasm, cache); err != nil {
			return failure.Module.Wrap(err)
		}
		failed += len(out.Cases)
	}
	if err := out.Write(o.streams.out, o.output == "json"); err != nil {
		return err
	}
	if failed > 0 {
		return failure.Module.Wrap(fmt.Errorf("module[%s]: %s", o.module, humanize.Plural(failed, "failure")))
	}
	return nil
}

// runKit runs the conformance cases and records those that fail. A function that the SDK lacks is not
// a failure.
func runKit(ctx context.Context, v *printer.Validation, wasm []byte, cache string) error {
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
