// SPDX-License-Identifier: Apache-2.0

// Package sysmemory determines the memory that this process may use.
package sysmemory

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Available returns the memory of the container or of the machine, whichever is less. It returns 0
// if both are unknown.
func Available() int64 {
	return lesser(Container(), machine())
}

// lesser returns the lesser of two sizes. 0 means unknown.
func lesser(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// container returns the lowest limit of the control groups of a process. In a container, its own
// group is the root. On a machine, the group is below the root.
func container(read func(file string) ([]byte, error)) int64 {
	const root = "/sys/fs/cgroup"
	dirs := []string{"/"}
	if groups, err := read("/proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(groups)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				for path = filepath.Clean("/" + path); path != "/"; path = filepath.Dir(path) {
					dirs = append(dirs, path)
				}
			}
		}
	}
	var bound int64
	for _, dir := range dirs {
		bound = lesser(bound, limitIn(read, filepath.Join(root, dir, "memory.max")))
	}
	return lesser(bound, limitIn(read, filepath.Join(root, "memory/memory.limit_in_bytes")))
}

// limitIn reads a limit. "max" and similar values mean no limit.
func limitIn(read func(string) ([]byte, error), file string) int64 {
	b, err := read(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
