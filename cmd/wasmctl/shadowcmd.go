package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/shadow"
)

// defaultShadow is for how long a module shadows another.
const defaultShadow = time.Minute

// errDiffers is the error of a shadow that has found differences.
var errDiffers = errors.New("the modules do not do the same")

func newCmdShadow(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	how := admin.ShadowHow{For: defaultShadow}
	var output string
	formats := []string{"text", "json"}
	cmd := &cobra.Command{
		Use:   "shadow CONTROLLER MODULE",
		Short: "Compare what another module would do, without letting it",
		Long: `Runs another module on what the live one of a running controller runs on: the same objects, for the same reasons, with the same
settings. Its reads are answered as those of the live one were, and its writes held back: one that the live one has sent too is answered
as that was, any other is sent with dryRun=All, so that the API server says what it would have led to. In what both differ is printed,
object by object: writes and what a result declares, the next action, errors. Times that are as far apart as the runs are the same, and
values of Secrets are not shown.

The live one does not wait for it: it runs while the controller has nothing to do, or a run each second where that never is, and what it
has no time for is counted as dropped.

Exit code 0 says that both did the same, ` + fmt.Sprint(exitDiffers) + ` that they did not.`,
		Example: `  wasmctl shadow configmapgenerator new.wasm --for 5m
  wasmctl shadow configmapgenerator new.wasm --all --count 20     # objects are reconciled now; ends after 20 runs
  wasmctl shadow configmapgenerator new.wasm -o json | jq .run.differences`,
		Args: exactArgs("CONTROLLER", "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !slices.Contains(formats, output):
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", output, strings.Join(formats, ", ")))
			case how.For <= 0 || how.Count < 0:
				return usageError(cmd, errors.New("--for must be positive, and --count not negative"))
			}
			wasm, err := readModule(args[1])
			if err != nil {
				return err
			}
			return o.shadow(cmd.Context(), args[0], wasm, how, shadowPrinter{s.out, output == "json"})
		},
	}
	o.bind(cmd)
	f := cmd.Flags()
	f.DurationVar(&how.For, "for", how.For, "for how long runs are compared")
	f.IntVar(&how.Count, "count", 0, "end after so many runs (default: not bounded)")
	f.BoolVar(&how.All, "all", false, "have the live module reconcile all objects once, so that there is something to compare")
	f.StringVarP(&output, "output", "o", "text", strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// shadow asks for a shadow and prints what comes of it.
func (o *steerOptions) shadow(ctx context.Context, controller string, wasm []byte, how admin.ShadowHow, p shadowPrinter) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	sum, err := c.Shadow(ctx, controller, wasm, how, p.run)
	switch {
	case errors.Is(err, admin.ErrRefused):
		return withCode(exitModule, err)
	case err != nil:
		return steerError(ctx, c, err)
	}
	if err := p.summary(&sum); err != nil {
		return err
	}
	if sum.Different > 0 {
		return withCode(exitDiffers, errDiffers)
	}
	return nil
}

// shadowPrinter prints what a shadow tells: as text only what differs.
type shadowPrinter struct {
	out  io.Writer
	json bool
}

func (p shadowPrinter) run(r admin.Shadowed) error {
	if p.json {
		return json.NewEncoder(p.out).Encode(map[string]any{"run": r})
	}
	if len(r.Differences) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (reconcile %s)\n", r.Object, r.ReconcileID)
	for i := range r.Differences {
		b.WriteString("  " + differenceText(&r.Differences[i]) + "\n")
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

func (p shadowPrinter) summary(sum *shadow.Summary) error {
	if p.json {
		return json.NewEncoder(p.out).Encode(map[string]any{"summary": sum})
	}
	_, err := fmt.Fprintln(p.out, sum)
	return err
}

// differenceText is a line: what only the other module does begins with +, what
// only the live one does with -.
func differenceText(d *shadow.Difference) string {
	if d.Of != shadow.OfWrite {
		return diff.Line(d.Of, wordsOf(d.Live), wordsOf(d.Shadow))
	}
	what := d.Write
	if d.Path != "" {
		what += " " + d.Path
	}
	live, other := diff.Values(d.Live, d.Shadow, diff.Bounds{})
	return diff.Line(what, live, other)
}

// wordsOf is an action or an error in one line; -o json has all of it.
func wordsOf(v any) string {
	const limit = 200
	if v == nil {
		return ""
	}
	return diff.Clip(strings.ReplaceAll(fmt.Sprint(v), "\n", `\n`), limit)
}
