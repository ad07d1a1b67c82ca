// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
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

func TestUntil_StartsItsTimerIfSomebodyWaits(t *testing.T) {
	call, end := context.WithCancel(t.Context())
	defer end()
	u := &until{call: call, at: time.Now().Add(10 * time.Millisecond)}
	if u.Err() != nil || u.Value(key{}) != nil || u.timed.Load() != nil {
		t.Error("asking for an error or a value has started the timer")
	}
	child, cancel := context.WithTimeout(u, time.Hour)
	defer cancel()
	<-child.Done()
	if !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(u), context.DeadlineExceeded) {
		t.Errorf("%v, %v", child.Err(), context.Cause(u))
	}
	u = &until{call: call, at: time.Now().Add(time.Hour)}
	done := u.Done()
	end()
	if <-done; !errors.Is(u.Err(), context.Canceled) {
		t.Errorf("after the call: %v", u.Err())
	}
}
