package applier

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrUnchanged is the outcome for an object whose run was skipped. As with
// ErrPaused, no guest was called; Action is that of the run that is remembered.
var ErrUnchanged = errors.New("skipped: nothing it read has changed")

// Memo remembers runs that changed nothing, and what they read. It is safe for
// concurrent use, but one key is not used by several goroutines at once.
type Memo interface {
	// Recall returns the action of a run that would read what the remembered run of
	// the object has read; false where there is none. A requeue is due as it would
	// be after that run.
	Recall(ctx context.Context, s *Seen, now time.Time) (action abi.Action, same bool)
	// Begin forgets the remembered run, as another one begins, and returns what takes
	// down what that reads. It may be nil: then that run is not remembered.
	Begin(s *Seen) Reading
	// Forget forgets an object that is gone.
	Forget(key abi.Key)
}

// Seen is the object of a run, as the run sees it. Its bytes must not be changed.
type Seen struct {
	Key                  abi.Key
	UID, ResourceVersion string
	Object               []byte
}

// Reading takes down what one run reads. The goroutine of the run has it.
type Reading interface {
	// Read is abi.Run.Read.
	Read(abi.Read)
	// Wrote takes down a write that was accepted, and whether a watch shows it. It must
	// not keep w.
	Wrote(w *abi.Write, watched bool)
	// Keep remembers the run, if it can be: it was a success of a revision, and asks
	// for this action from now on.
	Keep(revision uint64, action abi.Action, now time.Time)
}

// recalled reports whether the run need not be, and then ends it. A run for which
// time, an earlier failure or a late cache is an input is neither skipped nor
// remembered.
func (r *run) recalled(ctx context.Context, s step) bool {
	m := r.a.cfg.Memo
	if m == nil || s != stepReconcile || r.object == nil || r.out.Stale || r.out.Attempt > 1 {
		return false
	}
	seen := &Seen{Key: r.out.Key, UID: r.head.uid, ResourceVersion: r.head.resourceVersion, Object: r.object}
	if r.out.Reasons.First.Type != abi.ReasonRequeue {
		if action, same := m.Recall(ctx, seen, time.Now()); same {
			r.out.Err, r.out.Action, r.out.DecidedBy, r.out.Attempt = ErrUnchanged, action, DecidedByMemo, 0
			return true
		}
	}
	r.reading = m.Begin(seen)
	return false
}

// keep has a run that succeeded remembered.
func (r *run) keep() {
	if r.reading != nil {
		r.reading.Keep(r.out.Revision, r.out.Action, time.Now())
	}
}
