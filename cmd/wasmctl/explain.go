package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdExplain(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var controller, namespace, output string
	cmd := &cobra.Command{
		Use:   "explain (KIND/NAME | [NAMESPACE/]NAME --controller CONTROLLER)",
		Short: "Explain why an object was reconciled, or why it is not",
		Long: `Asks a running process about one object. The output shows what the object does now and what keeps it from running: a pause, a
denied watch, a selector, a predicate, leader election, a back-off, a hot loop, or busy workers. For each recent run it shows the
event that triggered it, the fields that had changed, the waiting time, reads, writes and the result.

The history is bounded by --history of "wasmctl run". Values of Secrets are hidden.`,
		Example: `  wasmctl explain webapp/hello -n shop
  wasmctl explain shop/hello --controller webapp
  wasmctl explain deployment/web -o json | jq '.[0].runs[0]'`,
		Args: exactArgs("OBJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			return printer.Output(s.out, output, list, func() []byte { return printer.Explanations(list) })
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&controller, "controller", "", "Name the `controller` that reconciles the object, instead of the kind")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "Look in this `namespace` (default: default)")
	outputFlag(cmd, &output, "text", "json", "yaml")
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
