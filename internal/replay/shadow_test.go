// SPDX-License-Identifier: Apache-2.0

package replay

import "testing"

// TestShadow_DropsWhatItHasNoTimeFor: excess runs are dropped and counted; runs after its end are not accepted.
func TestShadow_DropsWhatItHasNoTimeFor(t *testing.T) {
	x := &shadowing{runs: make(chan sample, maxShadowed)}
	for range maxShadowed + 3 {
		x.offer(&recording{})
	}
	x.end()
	x.offer(&recording{})
	x.end()
	if x.dropped != 3 || len(x.runs) != maxShadowed {
		t.Errorf("%d dropped, %d wait", x.dropped, len(x.runs))
	}
}
