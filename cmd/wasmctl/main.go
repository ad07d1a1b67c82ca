// SPDX-License-Identifier: Apache-2.0

// Command wasmctl runs Kubernetes controllers whose reconcile logic is a
// WebAssembly module.
package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
)

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
	progress *progress.Line // shows long tasks on err; nil shows nothing
}

func main() {
	if info, _ := debug.ReadBuildInfo(); version == "dev" {
		version = releaseOf(info)
	}
	os.Exit(execute(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
