// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"math/rand/v2"
	"testing"
)

// TestGrows_ALeakAndNotAPlateau: memory grows by pages, and a collector's heap doubles until it is
// large enough.
func TestGrows_ALeakAndNotAPlateau(t *testing.T) {
	const mi = 1 << 20
	for name, tc := range map[string]struct {
		used []int64
		want bool
	}{
		"flat":             {[]int64{4, 4, 4, 4, 4, 4, 4, 4}, false},
		"one late step":    {[]int64{12, 16, 16, 16, 16, 16, 16, 16}, false},
		"doubles, then up": {[]int64{4, 8, 12, 16, 16, 16, 16, 16}, false},
		"ever more seldom": {[]int64{4, 8, 12, 14, 16, 16, 16, 17}, false},
		"a leak":           {[]int64{4, 5, 6, 7, 8, 9, 10, 11}, true},
		"a leak, in steps": {[]int64{4, 4, 6, 6, 8, 8, 10, 10}, true},
		"it starts late":   {[]int64{4, 4, 4, 4, 4, 5, 6, 7}, true},
		"too few":          {[]int64{4, 8}, false},
	} {
		for i := range tc.used {
			tc.used[i] *= mi
		}
		if got := grows(tc.used); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 { // a leak of any rate, in whole pages
		rate, used := 1+rnd.Float64()*50, make([]int64, 32)
		for i := range used {
			used[i] = int64(float64(i)*rate) * 64 << 10
		}
		if !grows(used) {
			t.Fatalf("a leak of %v pages is not seen: %v", rate, used)
		}
	}
}
