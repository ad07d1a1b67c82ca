// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// seen is a lease, and when it last changed according to the local clock.
type seen struct {
	Lease
	alive string    // the version of an earlier renewal, by which it had run most changes
	ran   slots.Set // the slots that it has run since then
	since time.Time
	gone  bool // the lease was deleted
	heard bool // the lease has changed since this replica started
}

// next returns what is known after the lease has changed. s may be nil.
func (s *seen) next(now time.Time, l Lease, t Timing) *seen {
	next := &seen{Lease: l, alive: l.Version, ran: l.State.Open, since: now}
	if s == nil {
		return next
	}
	next.alive, next.ran = s.alive, s.ran
	if l.Ended {
		return next
	}
	if now.Sub(s.since) > t.Renew/2 {
		next.alive, next.ran = s.Version, s.State.Open
	}
	next.ran.Add(l.State.Open)
	return next
}
