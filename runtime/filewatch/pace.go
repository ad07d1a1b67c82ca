// SPDX-License-Identifier: Apache-2.0

package filewatch

import "time"

// maxWait is the maximum number of settle times before a look.
const maxWait = 10

// pace determines when to look: after a quiet time of settle since the last event, but at most maxWait settle times after the first event
// since the last look. This way, a file that changes continuously is looked at too.
type pace struct {
	settle time.Duration
	first  time.Time // of the events since the last look; zero if there are none
	at     time.Time // the next look; zero if there is none
}

// event records a change, or that a look must be repeated.
func (p *pace) event(now time.Time) {
	if p.first.IsZero() {
		p.first = now
	}
	p.at = now.Add(p.settle)
	if last := p.first.Add(maxWait * p.settle); p.at.After(last) {
		p.at = last
	}
}

// looked records a look.
func (p *pace) looked() { p.first, p.at = time.Time{}, time.Time{} }
