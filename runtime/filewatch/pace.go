package filewatch

import "time"

// maxWait is how many settle times a look waits at most for it to become quiet.
const maxWait = 10

// pace says when to look: once it has been quiet for the settle time after an
// event, but no later than maxWait settle times after the first one that was not
// looked at. So a file that is touched all the time is looked at too.
type pace struct {
	settle time.Duration
	first  time.Time // of the events that were not looked at; zero for none
	at     time.Time // the next look; zero for none
}

// event notes a change, or that a look has to be repeated.
func (p *pace) event(now time.Time) {
	if p.first.IsZero() {
		p.first = now
	}
	p.at = now.Add(p.settle)
	if last := p.first.Add(maxWait * p.settle); p.at.After(last) {
		p.at = last
	}
}

// looked notes that a look was taken.
func (p *pace) looked() { p.first, p.at = time.Time{}, time.Time{} }
