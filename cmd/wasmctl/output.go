// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// outputFlag adds the flag -o, which accepts one of these formats. The first one is the default.
func outputFlag(cmd *cobra.Command, to *string, formats ...string) {
	*to = formats[0]
	cmd.Flags().VarP(&choice{to, formats}, "output", "o", strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// choice is the value of a flag that accepts one of several words. It implements pflag.Value.
type choice struct {
	value *string
	of    []string
}

// Set implements pflag.Value.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("want one of %s", strings.Join(c.of, ", "))
	}
	*c.value = s
	return nil
}

// String implements pflag.Value.
func (c *choice) String() string {
	if c.value == nil { // pflag calls String of the zero value
		return ""
	}
	return *c.value
}

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }
