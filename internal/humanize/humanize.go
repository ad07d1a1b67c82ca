// SPDX-License-Identifier: Apache-2.0

// Package humanize formats sizes, ages, counts and digests for people.
package humanize

import (
	"fmt"
	"strings"
	"time"
)

// Bytes is a number of bytes. It is formatted as a quantity such as 256Mi in text, and as a number in JSON.
type Bytes int64

// String implements fmt.Stringer. It uses at most one decimal.
func (n Bytes) String() string {
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

// BytesExact formats a size both as a quantity and exactly.
func BytesExact(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%v (%d bytes)", Bytes(n), n)
}

// Plural formats a count with its noun, such as "1 object" or "2 objects".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OneLine joins the lines of a text with spaces, as for a log.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// FirstLine returns a text up to its first line break.
func FirstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// Age formats a duration with at most two units, like kubectl.
func Age(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	switch d := now.Sub(since); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Digest abbreviates a digest to a length that still distinguishes modules.
func Digest(d string) string {
	if len(d) > len("sha256:")+12 {
		return d[:len("sha256:")+12]
	}
	return d
}

// Count formats a count with at most four digits.
func Count(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f", n)
}
