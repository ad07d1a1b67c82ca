// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// TestGroup_EachFlagStandsOnce: the help has each flag exactly once, and all flags of a group exist.
func TestGroup_EachFlagStandsOnce(t *testing.T) {
	cmd := &cobra.Command{Use: "run", Short: "run", Run: func(*cobra.Command, []string) {}}
	cmd.Flags().StringP("filename", "f", "", "file")
	Bind(cmd, &v1alpha1.ControllerSpec{})
	(&Process{}).Bind(cmd)
	Group(cmd)
	help := cmd.UsageString()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		line := regexp.MustCompile(`(?m)^ +(-\w, +)?--` + f.Name + `\b[^-]`)
		if f.Name != "help" && len(line.FindAllString(help, -1)) != 1 {
			t.Errorf("--%s does not stand once in:\n%s", f.Name, help)
		}
	})
	for _, g := range groups {
		if !strings.Contains(help, "\n"+g.title+":\n") {
			t.Errorf("no heading %s", g.title)
		}
		for _, name := range g.flags {
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s: there is no flag --%s", g.title, name)
			}
		}
	}
	if n := strings.Count(help, "\nFlags:\n"); n > 1 {
		t.Errorf("%d times flags without a group", n)
	}
}
