// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newCmdMan returns a command for make release.
func newCmdMan() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write the manual pages of all commands to a directory", Hidden: true, Args: exactArgs("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeMan(cmd.Root(), args[0])
		},
	}
}

// writeMan writes the pages of a command and its subcommands.
func writeMan(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.IsAdditionalHelpTopicCommand() {
		return nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(cmd, name)), 0o644); err != nil { //nolint:gosec // for everybody
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage returns the page of a command, in the format of man(7).
func manPage(cmd *cobra.Command, name string) string {
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
		}
	}
	fmt.Fprintf(&b, ".TH %q 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), roff(name), roff(cmd.Short))
	section("SYNOPSIS", cmd.UseLine())
	section("DESCRIPTION", cmd.Long)
	b.WriteString(".SH OPTIONS\n")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", roff(strings.TrimSpace(short+"--"+f.Name+" "+kind)), roff(usage))
	})
	section("EXAMPLES", cmd.Example)
	var others []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			others = append(others, name+"-"+sub.Name()+"(1)")
		}
	}
	section("SEE ALSO", strings.Join(others, "\n"))
	return b.String()
}

// roff escapes a text, so that none of its lines is a request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	return strings.ReplaceAll(strings.ReplaceAll("\n"+s, "\n.", "\n\\&."), "\n'", "\n\\&'")[1:]
}
