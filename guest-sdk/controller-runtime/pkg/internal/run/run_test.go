// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"
)

func TestBefore_LeavesTimeForTheError(t *testing.T) {
	start := time.Unix(1000, 0)
	for limit, want := range map[time.Duration]time.Duration{
		30 * time.Second: 29 * time.Second, 5 * time.Second: 4500 * time.Millisecond, time.Minute: 59 * time.Second, 0: 0,
	} {
		if got := before(start.Add(limit), start).Sub(start); got != want {
			t.Errorf("a limit of %v: the context ends after %v, want %v", limit, got, want)
		}
	}
}
