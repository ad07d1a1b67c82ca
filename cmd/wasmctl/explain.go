// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdExplain(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var t target
	var output string
	var last int
	cmd := &cobra.Command{
		Use:   "explain [CONTROLLER] [NAMESPACE/]NAME | KIND/NAME",
		Short: "Explain why an object was reconciled, or why it is not",
		Long: `Asks a running process about one object. The output shows what the object does now and what keeps it from running: a pause, a
denied watch, a selector, a predicate, leader election, a back-off, a hot loop, or busy workers. For each recent run it shows the
event that triggered it, the fields that had changed, the waiting time, reads, writes and the result.

Name the object by its controller or by its kind. CONTROLLER can be omitted if the process has only one. For a kind that several
controllers reconcile, the output begins with those that watch the object.

The history is bounded by --history of "wasmctl run". Values of Secrets are hidden.`,
		Example: `  wasmctl explain webapp/hello -n shop
  wasmctl explain hello -n shop --last 1
  wasmctl explain webapp shop/hello
  wasmctl explain deployment/web -o json | jq '.[0].runs[0]'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageError(cmd, errors.New("OBJECT is missing"))
			case len(args) > 2:
				return usageError(cmd, fmt.Errorf("unexpected argument %q", args[2]))
			}
			f, err := o.reach(cmd.Context())
			if err != nil {
				return err
			}
			questions, err := t.questions(args, f.names())
			if err != nil {
				return f.hint(cmd.Context(), args[0], err)
			}
			list, err := f.explain(cmd.Context(), questions)
			if err != nil {
				return err
			}
			for i := range list {
				if runs := &list[i].Runs; last >= 0 && last < len(*runs) {
					*runs = (*runs)[:last]
				}
			}
			return printer.Output(s.out, output, list, func() []byte { return printer.Explanations(list) })
		},
	}
	o.bind(cmd)
	t.bind(cmd)
	cmd.Flags().IntVar(&last, "last", -1, "Show at most this many runs; -1 shows all")
	outputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

// ask asks the first question. If no controller reconciles its kind, ask tries the second question,
// and uses the answer if that object exists.
func ask(ctx context.Context, c *admin.Client, questions []admin.Question) ([]admin.Explanation, error) {
	list, err := c.Explain(ctx, questions[0])
	if len(questions) == 1 || !errors.Is(err, failure.Usage) {
		return list, err
	}
	other, failed := c.Explain(ctx, questions[1])
	if failed != nil || len(other) == 0 || other[0].State == admin.StateAbsent {
		return nil, err
	}
	return other, nil
}

// errWantOne is the error for arguments that do not name one object.
var errWantOne = errors.New("want KIND/NAME, [NAMESPACE/]NAME, or CONTROLLER and [NAMESPACE/]NAME")

// questions returns the possible meanings of the arguments, the most likely first.
func (t *target) questions(args, known []string) ([]admin.Question, error) {
	kind, name, hasKind := cutLast(args[0])
	byKind := admin.Question{Controller: t.controller, Kind: kind, Object: abi.Key{Namespace: t.namespace, Name: name}}
	switch only := t.controller == "" && len(known) == 1; {
	case hasKind && (kind == "" || name == ""):
		return nil, failure.Usage.Wrap(fmt.Errorf("object %q: %w", args[0], errWantOne))
	case t.controller == "" && len(args) == 2 && !slices.Contains(known, args[0]): // KIND NAME
		keys, err := parseKeys(args[1:], t.namespace)
		if err != nil {
			return nil, err
		}
		return []admin.Question{{Kind: args[0], Object: keys[0]}}, nil
	case hasKind && len(args) == 1 && (t.namespace != "" || strings.Contains(kind, "/") || t.controller == "" && !only):
		return []admin.Question{byKind}, nil
	case hasKind && len(args) == 1 && only:
		return []admin.Question{byKind, {Controller: known[0], Object: abi.Key{Namespace: kind, Name: name}}}, nil
	}
	controller, keys, err := t.resolve(args, known)
	switch {
	case err != nil:
		return nil, err
	case len(keys) != 1:
		return nil, failure.Usage.Wrap(errWantOne)
	}
	return []admin.Question{{Controller: controller, Object: keys[0]}}, nil
}

// cutLast cuts a text at its last slash.
func cutLast(s string) (before, after string, ok bool) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}
