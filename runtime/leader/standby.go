// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// standby is what a replica that does not lead knows about the lease. It uses only the local clock, because the clocks of machines differ:
// the lease of another replica is over when its record has not changed for its whole duration. It belongs to the goroutine of Elector.Run.
type standby struct {
	period time.Duration // renewal interval of a leader
	lease  time.Duration // duration of a lease, unless its record has a longer one

	record string    // as last read; empty if the lease does not exist
	since  time.Time // when it was last seen to change
	known  bool      // the lease existed before
}

// see records what was read, and returns how long to wait before reading again; zero means that the lease is over. r is nil if the lease
// does not exist. If it existed before, it was deleted, and its holder may write until it notices, or until the lease would have ended. If
// this replica has only just started, it waits for one period, in which a leader notices.
//
// A change is noticed within a tenth of the period: the next change is expected shortly before it is due, and then checked for more often.
// If the leader is late, the checks become less frequent, but the end of its lease is hit exactly.
func (s *standby) see(now time.Time, r *resourcelock.LeaderElectionRecord, raw []byte) time.Duration {
	if s.since.IsZero() || string(raw) != s.record {
		s.record, s.since = string(raw), now
	}
	lasts := s.period
	if r != nil {
		s.known = true
		lasts = time.Duration(r.LeaseDurationSeconds) * time.Second
	}
	if s.known {
		lasts = max(s.lease, lasts)
	}
	age := now.Sub(s.since)
	early, next := s.period*9/10, s.period
	switch {
	case age < early:
		next = early - age
	case age < s.period*2:
		next = s.period / 10
	}
	return max(0, min(next, lasts-age))
}
