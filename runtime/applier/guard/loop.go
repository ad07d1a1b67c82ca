// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Start is the information that is available when a run starts.
type Start struct {
	Time time.Time
	// First and More are the reasons of the run.
	First abi.Reason
	More  []abi.Reason
	// UID is the uid of the reconciled object.
	UID string
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
	touched bool          // another writer changed an object after the last run wrote it
	quiet   time.Duration // how long no run changed anything, if that was longer than the gap
}

// cause is the cause of a run.
type cause uint8

const (
	causeOther cause = iota // something other than the last run
	causeAsked              // the time that the last run requested has come
	causeOwn                // only writes of the last run
)

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
// becomes hot when the count reaches the limit, and either no other writer reacted, or one reverted the last writes. It becomes calm again
// when its runs change nothing, or when it does not run for a while.
//
// Except for the guarded fields, only the goroutine that runs the key accesses a loop.
type loop struct {
	seen  time.Time     // guarded by Guard.mu: when the last run ended
	hot   bool          // guarded by Guard.mu
	delay time.Duration // guarded by Guard.mu: the last delay; 0 while calm
	why   Cause         // guarded by Guard.mu: valid while hot
	count int           // guarded by Guard.mu: consecutive runs that the previous run caused

	free   time.Time   // when the object was allowed to run again after its last change
	due    time.Time   // the time that the last run requested; zero if none
	wrote  []abi.Write // the changes of the last run that changed something
	known  []abi.Write // all objects changed in this sequence of runs
	fields []Field     // of the last inspected run that changed something
}

func (l *loop) begin(cfg Config, s *Start) Trial {
	t := Trial{loop: l}
	if idle := s.Time.Sub(l.free); idle > cfg.gap() {
		t.quiet = idle
		return t
	}
	t.Wrote, t.Versions = l.wrote, make([]string, len(l.wrote))
	for i := range l.wrote {
		t.Versions[i] = s.Version(&l.wrote[i])
	}
	t.cause, t.touched = l.causeOf(s, t.Versions)
	if t.cause == causeOwn && !l.hot && l.count >= cfg.Runs-3 {
		t.Inspect = l.wrote[:min(len(l.wrote), MaxInspect)]
	}
	return t
}

// byOthers reports whether a run has a reason other than the time that the last run requested.
func (s *Start) byOthers() bool {
	asked := func(t abi.ReasonType) bool { return t == abi.ReasonRequeue || t == abi.ReasonRetry }
	return !asked(s.First.Type) || slices.ContainsFunc(s.More, func(r abi.Reason) bool { return !asked(r.Type) })
}

// causeOf determines whether a run was caused only by the last run's writes.
func (l *loop) causeOf(s *Start, versions []string) (c cause, touched bool) {
	if !l.due.IsZero() && !s.Time.Before(l.due) {
		return causeAsked, false
	}
	c = causeAsked
	for i := -1; i < len(s.More); i++ {
		reason := &s.First
		if i >= 0 {
			reason = &s.More[i]
		}
		if reason.Type == abi.ReasonRequeue || reason.Type == abi.ReasonRetry {
			continue // a timer that was absorbed by a change
		}
		at := l.written(s, reason)
		if at < 0 {
			return causeOther, false
		}
		c = causeOwn
		w, now := &l.wrote[at], versions[at]
		gone := w.Deleted && now == ""
		touched = touched || now != w.ResourceVersion && !gone
	}
	return c, touched
}

// written returns the index of the last run's write that the reason refers to, or -1.
func (l *loop) written(s *Start, reason *abi.Reason) int {
	return slices.IndexFunc(l.wrote, func(w abi.Write) bool {
		switch reason.Type {
		case abi.ReasonObjectUpdated:
			return w.UID != "" && w.UID == s.UID
		case abi.ReasonRelated:
			return w.Key == reason.Ref && isResource(&w, reason.Resource)
		default:
			return false
		}
	})
}

// isResource reports whether w is a write to a resource such as "deployments.apps" or "pods".
func isResource(w *abi.Write, resource string) bool {
	n := len(w.Resource)
	if w.Group == "" {
		return resource == w.Resource
	}
	return len(resource) == n+1+len(w.Group) && resource[:n] == w.Resource && resource[n] == '.' && resource[n+1:] == w.Group
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
	l.free, l.wrote = e.Time, e.Changes
	progress = l.learn(e.Changes)
	switch t.cause {
	case causeOther:
		l.count = max(0, l.count-1)
		return Decision{}, progress
	case causeAsked:
		return Decision{}, progress
	case causeOwn:
	}
	if l.hot {
		l.count = max(l.count+1, cfg.Runs)
		return l.delayMore(cfg), progress
	}
	if progress {
		l.count, l.fields = 0, nil
		return Decision{}, true
	}
	before := l.fields
	l.count, l.fields = l.count+1, e.Fields
	return l.judge(cfg, t, before), false
}

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
			l.count, l.fields = 0, nil // others react without reverting anything: it makes progress
		}
		return Decision{}
	}
	l.hot, l.why = true, CauseWrites
	if contested {
		l.why = CauseContested
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
	l.count, l.fields = 0, nil
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
