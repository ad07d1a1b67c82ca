// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
)

// version is the release. The linker sets it when a tag is built. Otherwise main sets it to releaseOf the
// build.
var version = "dev"

// commit is the commit of a release, and date the time of the commit in RFC 3339. The linker sets both.
var commit, date string

// build describes the binary. The names of its fields are stable.
type build struct {
	Version string `json:"version"`
	// Commit and Date are empty if they are unknown.
	Commit   string `json:"commit"`
	Date     string `json:"date"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	ABI      int    `json:"abi"`
}

// releaseOf returns the version of a binary that go install has built from a published module. Only such
// a build has the checksum of the main module; others are development builds.
func releaseOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Sum == "" {
		return "dev"
	}
	return info.Main.Version
}

func newCmdVersion(s streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Prints the version. With -o json, the fields are version, commit, date (of the commit), go, platform and abi.",
		Example: "  wasmctl version\n  wasmctl version -o json | jq -r .version",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			return printer.Output(s.out, output, thisBuild(), func() []byte { return []byte(versionLine() + "\n") })
		},
	}
	outputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}

// thisBuild describes this binary. Without a release, commit and date are those that the go command
// has recorded.
func thisBuild() build {
	b := build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, ABI: abi.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		}
	}
	return b
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
