// Package nearest names the word that a user may have meant.
package nearest

import (
	"fmt"
	"strings"
)

// Hint returns `; did you mean "word"?` for the word that is nearest to got,
// or "" where none is near. Case does not count as a difference.
func Hint(got string, words ...string) string {
	best, far := "", len(got)/3+2
	for _, w := range words {
		if d := distance(strings.ToLower(got), strings.ToLower(w), far); d < far {
			best, far = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the number of bytes to be inserted, removed or replaced between
// two words, or at least limit where that is more.
func distance(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
