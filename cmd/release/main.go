// SPDX-License-Identifier: Apache-2.0

// Command release creates the published files from binaries of wasmctl: an image, and a list of the
// modules in each binary. The same binaries give the same bytes. See make image and make release.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	image := flag.String("image", "", "directory to write an image of the binaries to, as an OCI layout")
	version := flag.String("version", "dev", "version of the image, and its tag")
	epoch := flag.String("time", os.Getenv("SOURCE_DATE_EPOCH"), "time of all created files, in seconds since 1970")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: release [-image DIR] [-version V] [-time SECONDS] BINARY...\n\nWithout -image, BINARY.cdx.json lists the modules in each binary.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*image, *version, *epoch, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(dir, version, epoch string, binaries []string) error {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("-time or SOURCE_DATE_EPOCH: %w", err)
	}
	at := time.Unix(seconds, 0).UTC()
	if dir != "" {
		d, err := writeImage(dir, version, at, binaries)
		if err != nil {
			return err
		}
		fmt.Printf("%s@%s\n", dir, d)
		return nil
	}
	for _, path := range binaries {
		b, err := billOfMaterials(path, at)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".cdx.json", b, 0o644); err != nil { //nolint:gosec // everybody may read it
			return err
		}
	}
	return nil
}
