// SPDX-License-Identifier: Apache-2.0

// Command wasmctl runs Kubernetes controllers whose reconcile logic is a
// WebAssembly module.
package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
)

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	if info, _ := debug.ReadBuildInfo(); version == "dev" {
		version = releaseOf(info)
	}
	os.Exit(execute(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}
