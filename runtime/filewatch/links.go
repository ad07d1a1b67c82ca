package filewatch

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds how many symbolic links of a path are followed, as the kernel
// does.
const maxLinks = 40

// places returns what a path goes through: each symbolic link on its way, and the
// file in the end, which need not exist. A change of one of them may change what
// the path means.
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
