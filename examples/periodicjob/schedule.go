// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// schedule determines when a PeriodicJob starts: at its creation, and after every period.
type schedule struct {
	begin  time.Time
	period time.Duration
}

func scheduleOf(pj wasmctl.Object) schedule {
	return schedule{begin: pj.CreationTimestamp(), period: time.Duration(pj.Int("spec", "everySeconds")) * time.Second}
}

// last returns the latest start that is not after now, and next the one that follows it. Both
// depend only on the object and the clock: a host that was down for an hour starts one Job, not
// sixty, and two hosts agree.
func (s schedule) last(now time.Time) time.Time {
	if s.period <= 0 || now.Before(s.begin) {
		return s.begin
	}
	return s.begin.Add(now.Sub(s.begin) / s.period * s.period)
}

func (s schedule) next(now time.Time) time.Time { return s.last(now).Add(s.period) }
