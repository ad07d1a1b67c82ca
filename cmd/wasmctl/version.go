// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
)

// version is the release. The linker sets it when a tag is built. Otherwise main sets it to releaseOf the
// build.
var version = "dev"

// releaseOf returns the version of a binary that go install has built from a published module. Only such
// a build has the checksum of the main module; others are development builds.
func releaseOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Sum == "" {
		return "dev"
	}
	return info.Main.Version
}

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

// versionLine returns the release, the ABI version, and the versions of Go, wazero and client-go in
// this binary.
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
