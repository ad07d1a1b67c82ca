package main

import (
	"fmt"
	"strings"
)

// byteSize is a number of bytes: a quantity such as 256Mi in text, a number in
// JSON.
type byteSize int64

// String implements fmt.Stringer. One decimal at most is kept.
func (n byteSize) String() string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if int64(n) >= u.size {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.size)), ".0") + u.name
		}
	}
	return fmt.Sprint(int64(n))
}

// bytesText writes a size as people read it, and exactly.
func bytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%v (%d bytes)", byteSize(n), n)
}
