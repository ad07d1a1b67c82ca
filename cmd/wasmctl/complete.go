// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// completeLimit is the maximum time that a shell waits for a running process.
const completeLimit = time.Second

// completeArgs lets the shell complete the arguments of each command, according to the placeholders
// in its usage: CONTROLLER, NAME, MODULE, FILE, DIR, CASES, LEVEL.
func completeArgs(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeArgs(cmd)
		cmd.ValidArgsFunction = completeArg
		if cmd.Flags().Lookup("controller") != nil {
			_ = cmd.RegisterFlagCompletionFunc("controller", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return controllerNames(cmd), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// completeArg completes the argument that comes after args.
func completeArg(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch argWord(cmd.Use, len(args)) {
	case "CONTROLLER":
		return append(controllerNames(cmd), objectNames(cmd, args)...), cobra.ShellCompDirectiveNoFileComp
	case "[NAMESPACE/]NAME", "NAMESPACE/]NAME":
		return objectNames(cmd, args), cobra.ShellCompDirectiveNoFileComp
	case "LEVEL":
		return logging.Levels, cobra.ShellCompDirectiveNoFileComp
	case "MODULE":
		return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
	case "FILE":
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case "DIR":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case "CASES":
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// argWord returns the placeholder of a usage, such as "trigger CONTROLLER [NAMESPACE/]NAME...", for
// the argument with this index, or "" if there is none.
func argWord(use string, index int) string {
	use, _, _ = strings.Cut(use, " | ")
	words := strings.Fields(use)[1:]
	if n := len(words); index >= n && n > 0 && strings.HasSuffix(strings.Trim(words[n-1], "[]"), "...") {
		index = n - 1
	}
	if index >= len(words) {
		return ""
	}
	return strings.Trim(words[index], "[].")
}

// ofProcess asks the running process for names. It returns nil if there is no process or no answer.
func ofProcess(cmd *cobra.Command, ask func(context.Context, *admin.Client) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeLimit)
	defer cancel()
	o := &steerOptions{}
	o.socket, _ = cmd.Flags().GetString("socket")
	c, err := o.client(ctx)
	if err != nil {
		return nil
	}
	names, err := ask(ctx, c)
	if err != nil {
		return nil
	}
	return names
}

// controllerNames returns the names of the running process's controllers.
func controllerNames(cmd *cobra.Command) []string {
	return ofProcess(cmd, func(ctx context.Context, c *admin.Client) ([]string, error) {
		st, err := c.Status(ctx)
		return namesOf(&st), err
	})
}

// completedObjects is the maximum number of offered objects.
const completedObjects = 200

// objectNames returns the busiest objects, for commands that take objects. They belong to the
// controller in args or flags, or to the only controller.
func objectNames(cmd *cobra.Command, args []string) []string {
	controller, namespace := cmd.Flags().Lookup("controller"), cmd.Flags().Lookup("namespace")
	if controller == nil || namespace == nil {
		return nil
	}
	t := target{controller: controller.Value.String()}
	return ofProcess(cmd, func(ctx context.Context, c *admin.Client) ([]string, error) {
		st, err := c.Status(ctx)
		if err != nil {
			return nil, err
		}
		of, _, err := t.splitController(args, namesOf(&st))
		if err != nil {
			return nil, err
		}
		top, err := c.Top(ctx, completedObjects)
		var names []string
		for _, o := range top.Objects {
			name := o.Object
			if ns := namespace.Value.String(); ns != "" {
				name, _ = strings.CutPrefix(name, ns+"/")
			}
			if o.Controller == of {
				names = append(names, name)
			}
		}
		return names, err
	})
}

// dirOf returns the optional DIR argument of a command. The default is the current directory.
func dirOf(cmd *cobra.Command, args []string) (string, error) {
	switch len(args) {
	case 0:
		return ".", nil
	case 1:
		return args[0], nil
	}
	return "", usageError(cmd, fmt.Errorf("unexpected argument %q", args[1]))
}
