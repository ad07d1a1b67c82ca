// SPDX-License-Identifier: Apache-2.0

package sysmemory

import (
	"os"
	"testing"
)

func TestContainer_IsTheLeastBound(t *testing.T) {
	for want, files := range map[int64]map[string]string{
		0:  {},
		10: {"/sys/fs/cgroup/memory.max": "10\n"},
		20: {"/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "20"},
		30: {"/proc/self/cgroup": "1:x:/y\n0::/a/b\n", "/sys/fs/cgroup/a/memory.max": "30", "/sys/fs/cgroup/a/b/memory.max": "40", "/sys/fs/cgroup/memory.max": "max"},
		50: {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "50"},
	} {
		got := container(func(file string) ([]byte, error) {
			text, ok := files[file]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		})
		if got != want {
			t.Errorf("%v: %d, want %d", files, got, want)
		}
	}
}

func TestAvailable_IsKnownOnLinux(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err == nil && Available() < 64<<20 {
		t.Errorf("%d bytes", Available())
	}
}
