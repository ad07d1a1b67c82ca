package guard

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Start is what is known when a run starts.
type Start struct {
	Time time.Time
	// First and More are the reasons of the run.
	First abi.Reason
	More  []abi.Reason
	// UID is that of the reconciled object.
	UID string
	// Version returns the resourceVersion of a written object as the cache has it
	// now, "" where it is not there.
	Version func(w *abi.Write) string
}

// Trial is what the guard makes of a run that starts. The zero value is that of
// an object that is not watched over.
type Trial struct {
	// Inspect are the objects whose fields before the run's writes and after the
	// guard wants to have compared: End.Fields.
	Inspect []abi.Write
	// Wrote are the objects that the last run changed, and Versions their
	// resourceVersions as the cache has them now: those that the first write of
	// the run to such an object is to be compared with.
	Wrote    []abi.Write
	Versions []string

	loop    *loop
	cause   cause
	touched bool          // somebody else changed an object after the last run wrote it
	quiet   time.Duration // how long the row was broken
}

// cause is what a run was caused by.
type cause uint8

const (
	causeOther cause = iota // something that the last run did not do
	causeAsked              // the time that the last run asked for has come
	causeOwn                // nothing but what the last run wrote
)

// End is what a run did.
type End struct {
	Time time.Time
	// Changes are the writes that changed something, one per object; see Put.
	Changes []abi.Write
	// Action is what the run asked for.
	Action abi.Action
	// Fields are the changed fields of the objects of Trial.Inspect.
	Fields []Field
}

// Decision is what is to happen after a run.
type Decision struct {
	// Delay is how long the object must not run; 0 does not hold it.
	Delay time.Duration
	// Opened says that a hot loop was found by this run, Closed that one is over.
	Opened, Closed bool
	// Runs is how many runs in a row the loop has had.
	Runs int
	// Contested says that somebody else changes back what the runs write;
	// otherwise they trigger themselves.
	Contested bool
	// Fields are what keeps changing, as far as that is known.
	Fields []Field
}

// loop is the state of one object. It is calm, and counts the runs that its own
// writes caused, or hot, and holds the object after each of them. It gets hot
// when the count is full and nobody else answered, or somebody changed back what
// the last of them wrote. It gets calm again when runs change nothing or stay
// out.
//
// Only the goroutine that runs the key reads and writes a loop, except for the
// fields that are guarded.
type loop struct {
	seen  time.Time     // guarded by Guard.mu: when the last run ended
	hot   bool          // guarded by Guard.mu
	delay time.Duration // guarded by Guard.mu: how long the object was last held; 0 while calm

	count  int         // runs in a row that the run before caused
	free   time.Time   // when the object was free to run after it last changed something
	due    time.Time   // the time that the last run asked for; zero if for none
	wrote  []abi.Write // what the last run that changed something changed
	known  []abi.Write // all that the row has changed
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

// causeOf finds out whether nothing but the last run's writes led to a run.
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
			continue // a timer that a change absorbed
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

// written returns which of the last run's writes the reason speaks of; -1: none.
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

// isResource reports whether w is of a resource such as "deployments.apps" or
// "pods".
func isResource(w *abi.Write, resource string) bool {
	n := len(w.Resource)
	if w.Group == "" {
		return resource == w.Resource
	}
	return len(resource) == n+1+len(w.Group) && resource[:n] == w.Resource && resource[n] == '.' && resource[n+1:] == w.Group
}

// end is called with Guard.mu held.
func (l *loop) end(cfg Config, t Trial, e *End) Decision {
	l.seen, l.due = e.Time, time.Time{}
	if e.Action.Requeue {
		l.due = e.Time.Add(e.Action.After)
	}
	if t.quiet > 0 && l.rest(cfg, t.quiet) {
		return Decision{Closed: true}
	}
	if len(e.Changes) == 0 {
		return l.changedNothing(cfg)
	}
	l.free, l.wrote = e.Time, e.Changes
	isNew := l.learn(e.Changes)
	switch t.cause {
	case causeOther:
		l.count = max(0, l.count-1)
		return Decision{}
	case causeAsked:
		return Decision{}
	case causeOwn:
	}
	if l.hot {
		l.count = max(l.count+1, cfg.Runs)
		return l.delayMore(cfg)
	}
	if isNew {
		l.count, l.fields = 0, nil // it gets on
		return Decision{}
	}
	before := l.fields
	l.count, l.fields = l.count+1, e.Fields
	return l.judge(cfg, t, before)
}

// learn reports whether the row had not changed one of the objects yet. A row
// that has changed MaxWrites objects gets on no more.
func (l *loop) learn(changes []abi.Write) bool {
	n := len(l.known)
	for i := range changes {
		l.known, _ = Put(l.known, &changes[i])
	}
	return len(l.known) > n
}

// judge decides whether a calm object gets hot.
func (l *loop) judge(cfg Config, t Trial, before []Field) Decision {
	if l.count < cfg.Runs {
		return Decision{}
	}
	contested := t.touched && changedBack(before, l.fields)
	if t.touched && !contested {
		if len(before) > 0 && len(l.fields) > 0 {
			l.count, l.fields = 0, nil // others answer, and nobody undoes: it gets on
		}
		return Decision{}
	}
	l.hot = true
	d := l.delayMore(cfg)
	d.Opened, d.Contested, d.Fields = true, contested, l.fields
	return d
}

// delayMore holds the object after one more run of a hot loop.
func (l *loop) delayMore(cfg Config) Decision {
	l.delay = min(max(2*l.delay, cfg.MinDelay), cfg.MaxDelay)
	l.free = l.free.Add(l.delay)
	if !l.due.IsZero() && !l.due.After(l.free) {
		l.due = l.free.Add(1) // a run at the end of the hold is not the one that was asked for
	}
	return Decision{Delay: l.delay, Runs: l.count}
}

// changedNothing is the end of a run that changed nothing. A hot loop whose hold
// has gone to nothing is over.
func (l *loop) changedNothing(cfg Config) Decision {
	if !l.hot {
		return Decision{}
	}
	if l.delay /= 2; l.delay >= cfg.MinDelay {
		return Decision{}
	}
	return Decision{Closed: true, Runs: l.count}
}

// rest ends the row after a time without changes, and halves the hold for each
// time that it could have run in. It reports whether a hot loop is over by that.
func (l *loop) rest(cfg Config, quiet time.Duration) bool {
	l.count, l.known, l.fields = 0, nil, nil
	for l.hot && l.delay >= cfg.MinDelay && quiet > 0 {
		quiet -= max(l.delay, cfg.gap())
		l.delay /= 2
	}
	return l.hot && l.delay < cfg.MinDelay
}
