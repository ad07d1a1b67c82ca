// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the maximum number of symbolic links to follow, like the kernel's.
const maxLinks = 40

// places returns the paths that determine the target of a path: each symbolic link on the way, and the final file, which need not exist.
func places(path string) []string {
	var found []string
	rest := strings.Split(filepath.Clean(path), string(filepath.Separator))
	at := ""
	if filepath.IsAbs(path) {
		at, rest = string(filepath.Separator), rest[1:]
	}
	for len(rest) > 0 {
		at, rest = filepath.Join(at, rest[0]), rest[1:]
		target, err := os.Readlink(at)
		if err != nil || len(found) == maxLinks {
			continue
		}
		found = append(found, at)
		steps := strings.Split(filepath.Clean(target), string(filepath.Separator))
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at, steps = string(filepath.Separator), steps[1:]
		}
		rest = append(steps, rest...)
	}
	return append(found, at)
}
