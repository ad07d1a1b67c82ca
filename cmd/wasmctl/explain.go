package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdExplain(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var controller, namespace, output string
	cmd := &cobra.Command{
		Use:   "explain (KIND/NAME | [NAMESPACE/]NAME --controller CONTROLLER)",
		Short: "Say why an object ran last, and why it does not run",
		Long: `Asks a running process about one object: what it does now and what keeps it from running (paused, a watch that is denied,
a selector, a predicate, the leader's election, a back-off, a hot loop, no free worker), and of each of its last runs which
event led to it, which fields of the object had changed, how long it waited, what it read and wrote, and what came of it.

What is there of the past is bounded: see --history of "wasmctl run". Values of Secrets are hidden.`,
		Example: `  wasmctl explain webapp/hello -n shop
  wasmctl explain shop/hello --controller webapp
  wasmctl explain deployment/web -o json | jq '.[0].runs[0]'`,
		Args: exactArgs("OBJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(outputFormats, output) {
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", output, strings.Join(outputFormats, ", ")))
			}
			q, err := parseQuestion(args[0], controller, namespace)
			if err != nil {
				return usageError(cmd, err)
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			list, err := c.Explain(cmd.Context(), q)
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			return writeOutput(s.out, output, list, func() []byte { return explainText(list) })
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&controller, "controller", "", "controller that reconciles the object, instead of its kind")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object (default: default)")
	cmd.Flags().StringVarP(&output, "output", "o", "text", strings.Join(outputFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// parseQuestion reads KIND/NAME or, for a controller, NAMESPACE/NAME.
func parseQuestion(arg, controller, namespace string) (admin.Question, error) {
	q := admin.Question{Controller: controller}
	first, name, two := strings.Cut(arg, "/")
	if i := strings.LastIndexByte(arg, '/'); two && i > len(first) && (controller == "" || namespace != "") {
		first, name = arg[:i], arg[i+1:] // group/version/Kind/name
	}
	switch {
	case !two && controller == "":
		return q, errors.New("want KIND/NAME, or NAME and --controller")
	case !two:
		q.Object = abi.Key{Namespace: namespace, Name: arg}
	case controller != "" && namespace == "":
		q.Object = abi.Key{Namespace: first, Name: name}
	default:
		q.Kind, q.Object = first, abi.Key{Namespace: namespace, Name: name}
	}
	if q.Object.Name == "" || two && first == "" {
		return q, fmt.Errorf("object %q: want KIND/NAME, or NAMESPACE/NAME and --controller", arg)
	}
	return q, nil
}
