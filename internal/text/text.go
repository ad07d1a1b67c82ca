// Package text bounds text that comes from others, a module or an API server,
// before it is kept or shown.
package text

import (
	"fmt"
	"strings"
)

// Truncate returns at most the first limit bytes of s, without half a character
// at the end. The omitted text is not kept in memory.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(strings.Clone(s[:limit]), "")
}

// Shorten is Truncate that also says how long s is, where it is too long.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", Truncate(s, limit), len(s))
}
