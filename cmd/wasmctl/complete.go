package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/logging"
)

// completeLimit bounds how long a shell waits for a running process.
const completeLimit = time.Second

// completeArgs lets the shell complete the arguments of each command, by the
// words of its usage: CONTROLLER, MODULE, FILE, DIR, CASES, LEVEL.
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
		return controllerNames(cmd), cobra.ShellCompDirectiveNoFileComp
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

// argWord is the word of a usage, "trigger CONTROLLER [NAMESPACE/]NAME...", that
// the argument with this index stands for; "" where there is none.
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

// controllerNames are those of the running process; nothing where none is found.
func controllerNames(cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeLimit)
	defer cancel()
	o := &steerOptions{}
	o.socket, _ = cmd.Flags().GetString("socket")
	c, err := o.client(ctx)
	if err != nil {
		return nil
	}
	st, err := c.Status(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, len(st.Controllers))
	for i, controller := range st.Controllers {
		names[i] = controller.Name
	}
	return names
}

// dirOf is the one argument of a command that works on a folder; here without it.
func dirOf(cmd *cobra.Command, args []string) (string, error) {
	switch len(args) {
	case 0:
		return ".", nil
	case 1:
		return args[0], nil
	}
	return "", usageError(cmd, fmt.Errorf("unexpected argument %q", args[1]))
}
