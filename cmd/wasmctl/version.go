package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
)

// version is the release; a build of a tag sets it by the linker.
var version = "dev"

func newCmdVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  wasmctl version",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.out, versionLine())
			return err
		},
	}
}

// versionLine names the release, the ABI, the Go version and the wazero
// version that this binary was built with.
func versionLine() string {
	line := fmt.Sprintf("wasmctl %s, reconciler ABI %d", version, abi.Version)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return line
	}
	line += ", " + info.GoVersion
	for _, dep := range info.Deps {
		if dep.Path == "github.com/tetratelabs/wazero" || dep.Path == "k8s.io/client-go" {
			line += ", " + dep.Path + " " + dep.Version
		}
	}
	return line
}
