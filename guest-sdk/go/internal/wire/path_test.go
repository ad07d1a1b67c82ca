// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"testing"
)

// TestIter_GoesOnBehindWhatWasWalked: the entries are the same as without
// Walked, whether the inner iteration reached the end or not.
func TestIter_GoesOnBehindWhatWasWalked(t *testing.T) {
	message, err := Append(nil, map[string]any{"a": []any{}, "b": []any{1, "two", []any{3}}, "c": nil, "d": []any{map[string]any{"x": 1}}, "e": true})
	if err != nil {
		t.Fatal(err)
	}
	keys := func(v []byte, walk int) (list []string) {
		it := Walk(v)
		for it.Next() {
			list = append(list, string(it.Key))
			inner := Walk(it.Value)
			for i := 0; i < walk && inner.Next(); i++ { // the condition advances
			}
			it.Walked(&inner)
		}
		return list
	}
	for end := range len(message) + 1 { // includes truncated messages
		want := keys(message[:end], 0)
		for walk := range 5 {
			if got := keys(message[:end], walk); !slices.Equal(got, want) {
				t.Errorf("%d bytes, %d steps: %q, want %q", end, walk, got, want)
			}
		}
	}
}
