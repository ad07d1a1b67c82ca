// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Start is the information that is available when a run starts.
type Start struct {
	Time time.Time
	// First and More are the reasons of the run.
	First abi.Reason
	More  []abi.Reason
	// UID and ResourceVersion are those of the reconciled object.
	UID, ResourceVersion string
	// Version returns the resourceVersion that a written object has in the cache now, or "" if it is not there.
	Version func(w *abi.Write) string
}

// Trial is the guard's view of a run that starts. The zero value is that of an object that is not observed.
type Trial struct {
	// Inspect are the objects whose fields the caller must compare before and after the run's writes: see End.Fields.
	Inspect []abi.Write
	// Wrote are the objects that the last run changed, and Versions their resourceVersions in the cache now. The caller must compare the
	// first write of the run to such an object with that version.
	Wrote    []abi.Write
	Versions []string

	loop    *loop
	asking  bool // the last run requested this one within MinRequeue
	others  bool // no write is observed, and something other than the last run caused this one
	cause   cause
	depth   int           // how many runs led to this one, each by a write that caused the next; see chains
	chained bool          // runs of other objects are among them
	touched bool          // another writer changed an object after the last run wrote it
	quiet   time.Duration // how long no run changed anything, if that was longer than the gap
}

// End describes a completed run.
type End struct {
	Time time.Time
	// Changes are the writes that changed something, one per object; see Put.
	Changes []abi.Write
	// Action is the action after the run. Host means that the host chose its time, as in a back-off: the guard does not change it.
	Action abi.Action
	Host   bool
	// Failed reports whether the run failed.
	Failed bool
	// Gone reports whether the object does not exist.
	Gone bool
	// Fields are the changed fields of the objects of Trial.Inspect.
	Fields []Field
}

// Decision is the result for a completed run.
type Decision struct {
	// Delay is how long the object must not run, whatever triggers it; 0 does not delay it.
	Delay time.Duration
	// Floor is the minimum time until the run that Action requests; other triggers start the object sooner.
	Floor time.Duration
	// Opened means that this run revealed a hot loop; Closed means that a hot loop is over.
	Opened, Closed bool
	// Runs is the number of consecutive runs in the loop so far.
	Runs int
	// Cause is the cause of a loop that this run revealed.
	Cause Cause
	// Fields are the fields that keep changing, if known.
	Fields []Field
}

// loop is the state of one object. A calm object counts the runs that its own writes caused; a hot one is delayed after each run. It
// becomes hot when the count reaches the limit, and either most runs had no reaction of another writer, or one reverted the last writes. It
// becomes calm again when its runs change nothing, or when it does not run for a while.
//
// Except for the guarded fields, only the goroutine that runs the key accesses a loop.
type loop struct {
	seen  time.Time     // guarded by Guard.mu: when the last run ended
	hot   bool          // guarded by Guard.mu
	delay time.Duration // guarded by Guard.mu: the last delay; 0 while calm
	why   Cause         // guarded by Guard.mu: valid while hot
	count int           // guarded by Guard.mu: consecutive runs that the previous run caused

	alone   int         // the counted runs before which no other writer touched the objects, less those before which one did
	free    time.Time   // when the object was allowed to run again after its last change
	due     time.Time   // the time that the last run requested; zero if none
	depth   int         // Trial.depth of the last run that changed something
	chained bool        // Trial.chained of any of the counted runs
	wrote   []abi.Write // the changes of the last run that changed something
	known   []abi.Write // all objects changed in this sequence of runs
	fields  []Field     // of the last inspected run that changed something
}

func (l *loop) begin(cfg Config, s *Start, madeBy func(version string) (depth int)) Trial {
	t := Trial{loop: l}
	if idle := s.Time.Sub(l.free); idle > cfg.gap() {
		t.quiet = idle
		return t
	}
	t.Wrote, t.Versions = l.wrote, make([]string, len(l.wrote))
	for i := range l.wrote {
		t.Versions[i] = s.Version(&l.wrote[i])
	}
	l.findCause(&t, s, madeBy)
	if t.cause == causeOwn && !l.hot && l.count >= cfg.Runs-3 {
		t.Inspect = l.wrote[:min(len(l.wrote), MaxInspect)]
	}
	return t
}

// end completes a trial, and reports whether the run made progress: it changed an object for the first time in this sequence of runs. The
// caller must hold Guard.mu.
func (l *loop) end(cfg Config, t Trial, e *End) (d Decision, progress bool) {
	l.seen = e.Time
	if t.quiet > 0 && l.rest(cfg, t) {
		return Decision{Closed: true}, false
	}
	if len(e.Changes) == 0 {
		return l.changedNothing(cfg), false
	}
	l.free, l.wrote, l.depth = e.Time, e.Changes, t.depth
	progress = l.learn(e.Changes)
	switch {
	case t.cause == causeOther, l.hot && l.why == CauseWrites && t.touched:
		l.count, l.alone = max(0, l.count-1), max(0, l.alone-1)
		return Decision{}, progress
	case t.cause == causeAsked:
		return Decision{}, progress
	}
	if l.hot {
		l.count = max(l.count+1, cfg.Runs)
		return l.delayMore(cfg), progress
	}
	if progress {
		l.calm()
		return Decision{}, true
	}
	before := l.fields
	l.chained = t.chained || l.chained && l.count > 0
	l.count, l.fields = l.count+1, e.Fields
	if t.touched {
		l.alone = max(0, l.alone-1)
	} else {
		l.alone++
	}
	return l.judge(cfg, t, before), false
}

// calm begins a new count.
func (l *loop) calm() { l.count, l.alone, l.fields = 0, 0, nil }

// expect records when the requested run is due. The caller must hold Guard.mu.
func (l *loop) expect(e *End, delay, floor time.Duration) {
	l.due = time.Time{}
	if !e.Action.Requeue {
		return
	}
	l.due = e.Time.Add(max(e.Action.After, floor))
	if delay > 0 && !l.due.After(l.free) {
		l.due = l.free.Add(1) // a run at the end of the delay is not the requested one
	}
}

// learn adds changed objects, and reports whether one of them is new in this sequence of runs. After MaxWrites objects, none counts as new.
func (l *loop) learn(changes []abi.Write) bool {
	n := len(l.known)
	for i := range changes {
		l.known, _ = Put(l.known, &changes[i])
	}
	return len(l.known) > n
}

// judge decides whether a calm object becomes hot.
func (l *loop) judge(cfg Config, t Trial, before []Field) Decision {
	if l.count < cfg.Runs {
		return Decision{}
	}
	contested := t.touched && changedBack(before, l.fields)
	if t.touched && !contested {
		if len(before) > 0 && len(l.fields) > 0 {
			l.calm() // others react without reverting anything: it makes progress
		}
		return Decision{}
	}
	if !contested && l.alone < cfg.Runs { // others wrote before the writes of a run ended, so that these concealed the change
		return Decision{}
	}
	l.hot, l.why = true, CauseWrites
	switch {
	case contested:
		l.why = CauseContested
	case l.chained:
		l.why = CauseChain
	}
	d := l.delayMore(cfg)
	d.Opened, d.Cause, d.Fields = true, l.why, l.fields
	return d
}

// delayMore increases the delay after one more run of a hot loop.
func (l *loop) delayMore(cfg Config) Decision {
	l.delay = min(max(2*l.delay, cfg.MinDelay), cfg.MaxDelay)
	l.free = l.free.Add(l.delay)
	return Decision{Delay: l.delay, Runs: l.count}
}

// changedNothing completes a run that changed nothing. A hot loop is over when its delay has shrunk below the minimum.
func (l *loop) changedNothing(cfg Config) Decision {
	if !l.hot {
		return Decision{}
	}
	if l.delay /= 2; l.delay >= cfg.MinDelay {
		return Decision{}
	}
	return Decision{Closed: true, Runs: l.count}
}

// rest ends the sequence after a time without runs, and halves the delay for each run that could have taken place in that time. It reports
// whether this ends a hot loop. Runs that ask for each other remain one sequence, however late they start.
func (l *loop) rest(cfg Config, t Trial) bool {
	l.calm()
	if !t.asking {
		l.known = nil
	}
	quiet := t.quiet
	for l.hot && l.delay >= cfg.MinDelay && quiet > 0 {
		quiet -= max(l.delay, cfg.gap())
		l.delay /= 2
	}
	return l.hot && l.delay < cfg.MinDelay
}
