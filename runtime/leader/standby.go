package leader

import (
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// standby is what a replica that does not lead has seen of the lease. It goes by
// its own clock alone, since those of two machines differ: the lease of another is
// over when its record has not changed for as long as it lasts. It belongs to the
// goroutine of Elector.Run.
type standby struct {
	period time.Duration // how often a leader renews
	lease  time.Duration // how long a lease lasts, where its record does not say more

	record string    // as it was read last
	since  time.Time // when a change of it was read
}

// see takes in what was read, and returns how long to wait before reading again;
// zero says that the lease is over.
//
// A change is noticed within a tenth of the period: the next one is looked for
// shortly before it is due, and then more often. A leader that is late is not
// looked for as often, and the end of its lease is waited for exactly.
func (s *standby) see(now time.Time, r *resourcelock.LeaderElectionRecord, raw []byte) time.Duration {
	if string(raw) != s.record {
		s.record, s.since = string(raw), now
	}
	age := now.Sub(s.since)
	left := max(s.lease, time.Duration(r.LeaseDurationSeconds)*time.Second) - age
	early, next := s.period*9/10, s.period
	switch {
	case age < early:
		next = early - age
	case age < s.period*2:
		next = s.period / 10
	}
	return max(0, min(next, left))
}
