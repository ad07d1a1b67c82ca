// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main use case, from an empty cluster to garbage collection, on a local
// control plane. `make demo` builds everything and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "directory with wasmctl, devcluster and the built examples")
	example := flag.String("example", "examples/configmapgenerator", "directory of the example")
	svg := flag.String("svg", "", "file for a picture of the terminal")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	begin := time.Now()
	if err := (&demo{bin: *bin, example: *example, svg: *svg}).run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo: FAILED:", err)
		stop()
		os.Exit(1)
	}
	fmt.Printf("demo: all steps succeeded, in %.1fs\n", time.Since(begin).Seconds())
}
