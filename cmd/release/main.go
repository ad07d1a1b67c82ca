// SPDX-License-Identifier: Apache-2.0

// Command release creates the published files from binaries: archives, lists of the modules in each binary, an image,
// the packed chart, the manifest of a plugin of kubectl, and checksums. The same binaries give the same bytes. See
// make image and make release.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	var p parts
	image := flag.String("image", "", "directory to write an image of the binaries to, as an OCI layout, and nothing else")
	dist := flag.String("dist", "", "directory to write the files of a release to; it is replaced")
	epoch := flag.String("time", os.Getenv("SOURCE_DATE_EPOCH"), "time of all created files, in seconds since 1970")
	flag.StringVar(&p.version, "version", "dev", "version of the release")
	flag.StringVar(&p.share, "share", "", "directory with a directory for each program, whose files go into the program's archives")
	flag.StringVar(&p.chart, "chart", "", "directory of the Helm chart")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: release (-image DIR | -dist DIR -share DIR -chart DIR) [-version V] [-time SECONDS] NAME-OS-ARCH...")
		flag.PrintDefaults()
	}
	flag.Parse()
	p.binaries = flag.Args()
	if err := run(p, *image, *dist, *epoch); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(p parts, image, dist, epoch string) error {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("-time or SOURCE_DATE_EPOCH: %w", err)
	}
	p.at = time.Unix(seconds, 0).UTC()
	if image != "" {
		files, digest, err := imageOf(p.version, p.at, p.binaries)
		if err != nil {
			return err
		}
		fmt.Printf("%s@%s\n", image, digest)
		return replaceDir(image, files)
	}
	if dist == "" {
		return errors.New("want -image or -dist")
	}
	files, err := publish(p)
	if err != nil {
		return err
	}
	return replaceDir(dist, files)
}
