// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestMissing_IsWhatComparingEachFieldWithEachPatternFinds: a walk that reuses results of shared
// steps finds the same as a naive comparison.
func TestMissing_IsWhatComparingEachFieldWithEachPatternFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	found, items := 0, 0
	for range 5000 {
		var patterns []string
		for range r.IntN(5) {
			patterns = append(patterns, randomPattern(r))
		}
		set, _ := ParseSet(patterns)
		before, after := randomObject(r, 4), randomObject(r, 4)
		for _, fields := range []Fields{Touched(after), Merged(after), Changed(before, after), Changed(nil, after)} {
			limit := 1 + r.IntN(6)
			want, wantItem := dumbMissing(set, all(fields))
			got, byItem := set.Missing(fields, limit)
			if texts(got) != texts(want[:min(len(want), limit)]) || len(got) < limit && byItem != wantItem {
				t.Fatalf("%v of %v: missing %s, by item %v, want %s, %v", patterns, after, texts(got), byItem, texts(want), wantItem)
			}
			for _, p := range all(fields) {
				covers, item := set.Covers(p)
				if missing := slices.ContainsFunc(want, func(q Path) bool { return q.String() == p.String() }); covers == missing || item && !wantItem {
					t.Fatalf("%v: %s: covers %v, by item %v", patterns, p, covers, item)
				}
			}
			found += len(got)
			if wantItem {
				items++
			}
		}
	}
	if found < 10_000 || items < 300 {
		t.Errorf("%d fields were missing, %d times some were covered by item: the random objects test little", found, items)
	}
}

func dumbMissing(s *Set, fields []Path) (missing []Path, byItem bool) {
	for _, f := range fields {
		covers, item := false, true
		for _, p := range s.patterns {
			ok, in := covers1(p, f)
			covers, item = covers || ok, item && (!ok || in)
		}
		if !covers {
			missing = append(missing, f)
		}
		byItem = byItem || covers && item
	}
	return missing, byItem
}

// covers1 compares one field with one pattern.
func covers1(pattern, field Path) (covers, byItem bool) {
	for i, want := range pattern {
		if i >= len(field) {
			return false, false
		}
		got := field[i]
		byItem = byItem || got.item != nil
		switch {
		case want.any:
		case want.match != nil:
			if !want.matches(got.item) {
				return false, false
			}
			if i+2 == len(field) && field[i+1].item == nil {
				if _, known := want.match[field[i+1].key]; known {
					return true, true
				}
			}
		case got.item != nil || got.key != want.key:
			return false, false
		}
	}
	return true, byItem
}

// TestFields_TakeMemoryByTheObject: finding fields takes no memory for each of
// them, however deep they are.
func TestFields_TakeMemoryByTheObject(t *testing.T) {
	const leaves, depth = 20_000, 100
	wide := map[string]any{}
	for i := range leaves {
		wide[strings.Repeat("x", i%7)+string(rune('a'+i%26))+"k"+string(rune(0x4e00+i))] = int64(1)
	}
	for range depth {
		wide = map[string]any{"a": wide}
	}
	set, err := ParseSet([]string{"b", "a.b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string]Fields{"touched": Touched(wide), "changed": Changed(nil, wide), "changed to nothing": Changed(wide, nil)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range fields.Without(func(Path) bool { return false }) {
		}
		if missing, _ := set.Missing(fields, 20); len(missing) != 20 {
			t.Fatal(len(missing))
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}
