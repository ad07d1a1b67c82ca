// SPDX-License-Identifier: Apache-2.0

// Package text limits and sanitizes text from other sources, such as a module or an API server, before it is stored or shown.
package text

import (
	"fmt"
	"strings"
)

// Truncate returns at most the first limit bytes of s, without a partial character at the end. It does not retain the remainder in memory.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(strings.Clone(s[:limit]), "")
}

// Shorten is like Truncate, and appends the length of s if it is too long.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", Truncate(s, limit), len(s))
}

// Clip is like Truncate, and appends "..." if s is too long.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return Truncate(s, limit) + "..."
}
