// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Turns are bounded, given back once even if they are ended several times, and limited in
// time: a module that hangs does not keep others from being loaded.
func TestTurns_AreBoundedAndDoNotLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		var ends []func()
		take := func() time.Duration {
			start := time.Now()
			end, err := turns.take(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
			return time.Since(start)
		}
		for range minTurns {
			if waited := take(); waited != 0 {
				t.Errorf("waited %v for a turn that is free", waited)
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := turns.take(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("there are more than %d turns: %v", minTurns, err)
		}
		for range 3 {
			ends[0]()
		}
		if waited := take(); waited != 0 {
			t.Errorf("waited %v for a turn that was ended", waited)
		}
		if waited := take(); waited != maxTurn-time.Second {
			t.Errorf("waited %v for one that nobody ends", waited)
		}
		for _, end := range ends {
			end()
		}
		if n := turns.Taken(); n != 0 {
			t.Errorf("%d turns are taken", n)
		}
	})
}
