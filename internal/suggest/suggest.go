// SPDX-License-Identifier: Apache-2.0

// Package suggest finds the known word that was probably meant by a misspelled one, in a manifest, a file or a command.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Word returns the known word that is most similar to an unknown one, ignoring case; "" if none is similar enough to be a typo.
func Word(unknown string, known []string) string {
	unknown = strings.ToLower(unknown)
	far := func(k string) int { return Distance(unknown, strings.ToLower(k)) }
	if len(known) == 0 {
		return ""
	}
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(far(a), far(b)) })
	if far(best) > Slips(unknown) {
		return ""
	}
	return best
}

// Hint returns `; did you mean "word"?` for the most similar known word, as the end of an error; "" if none is similar.
func Hint(unknown string, known []string) string {
	if meant := Word(unknown, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// Slips is the maximum number of typos in a word of this length.
func Slips(word string) int { return min(3, max(1, len(word)/4)) }

// Distance counts the letters that must be inserted, deleted, changed or swapped with a neighbor to turn a into b (optimal string
// alignment).
func Distance(a, b string) int {
	if abs := len(a) - len(b); abs > 3 || abs < -3 {
		return max(len(a), len(b)) // more than any typo; avoids the table
	}
	var before, prev, cur []int
	prev = make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur = make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
