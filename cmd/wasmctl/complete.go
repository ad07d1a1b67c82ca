// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/logging"
)

// completeLimit is the maximum time that a shell waits for running processes.
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

// reachFor returns the processes that the flags of a command name, or nil if none answers.
func reachFor(ctx context.Context, cmd *cobra.Command) fleet {
	o := &steerOptions{}
	for name, value := range map[string]*string{"socket": &o.socket, "in": &o.in, "pod": &o.pod, "kubeconfig": &o.kubeconfig.Path, "context": &o.kubeconfig.Context} {
		*value, _ = cmd.Flags().GetString(name)
	}
	f, err := o.reach(ctx)
	if err != nil {
		return nil
	}
	return f
}

// controllerNames returns the names of the controllers of the running processes.
func controllerNames(cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeLimit)
	defer cancel()
	return reachFor(ctx, cmd).names()
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeLimit)
	defer cancel()
	f := reachFor(ctx, cmd)
	t := target{controller: controller.Value.String()}
	of, _, err := t.splitController(args, f.names())
	if err != nil {
		return nil
	}
	var names []string
	for _, m := range f.runners(of) {
		top, _ := m.client.Top(ctx, completedObjects) // without an answer, there are no names
		for _, o := range top.Objects {
			name := o.Object
			if ns := namespace.Value.String(); ns != "" {
				name, _ = strings.CutPrefix(name, ns+"/")
			}
			if o.Controller == of {
				names = append(names, name)
			}
		}
	}
	return names
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
