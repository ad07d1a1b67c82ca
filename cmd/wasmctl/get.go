// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdGet(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	cmd := &cobra.Command{
		Use:   "get [CONTROLLER...]",
		Short: "List the controllers of a running process",
		Long: `Lists the controllers of a running process, or the named ones, in one table: that of "wasmctl status", which also shows watches
and revisions. "wasmctl get controllers" is the same. With -o json or yaml, one named controller is printed as it is, and otherwise
they are in a list, items. With --in, a controller that several replicas run is listed once for each of them.

Reconcilers are objects of the cluster: kubectl get reconcilers.`,
		Example: `  wasmctl get
  wasmctl get configmapgenerator -o yaml
  wasmctl get -o json | jq -r '.items[] | select(.state != "ok") | .name'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := o.reach(cmd.Context())
			if err != nil {
				return err
			}
			list, err := pickControllers(f.controllers(), args)
			if err != nil {
				return err
			}
			return printControllers(s, list, output, len(args) == 1 && len(list) == 1)
		},
	}
	o.bind(cmd)
	outputFlag(cmd, &output, "text", "json", "yaml", "name")
	return cmd
}

// pickControllers returns the controllers with these names, or all if there are none.
func pickControllers(all []admin.Controller, names []string) ([]admin.Controller, error) {
	find := func(name string) int {
		return slices.IndexFunc(all, func(c admin.Controller) bool { return c.Name == name })
	}
	if len(names) > 0 && (names[0] == "controllers" || names[0] == "controller") && find(names[0]) < 0 {
		names = names[1:]
	}
	if len(names) == 0 {
		return all, nil
	}
	var list []admin.Controller
	for _, name := range names {
		i := find(name)
		if i < 0 {
			err := runsThese(fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown), namesOf(&admin.Status{Controllers: all}))
			if kind, _, _ := strings.Cut(name, "/"); servedKind(kind) != "" {
				err = fmt.Errorf("%w; Reconcilers are objects of the cluster: kubectl get reconcilers", err)
			}
			return nil, failure.Usage.Wrap(err)
		}
		list = append(list, all[i])
	}
	return list, nil
}

// printControllers prints controllers; single prints one without a list around it.
func printControllers(s streams, list []admin.Controller, output string, single bool) error {
	switch {
	case output == "text":
		screen := printer.ScreenOf(s.out)
		return screen.Write(printer.ControllerLines(list, time.Now(), screen))
	case output == "name":
		for i := range list {
			if _, err := fmt.Fprintln(s.out, text.Line(list[i].Name)); err != nil {
				return err
			}
		}
		return nil
	case single:
		return printer.Output(s.out, output, &list[0], nil)
	}
	return printer.Output(s.out, output, items[admin.Controller]{list}, nil)
}

// items is a list in JSON and YAML, in the form of kubectl.
type items[T any] struct {
	Items []T `json:"items"`
}
