// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrUnchanged is the outcome for an object whose run was skipped. As with ErrPaused, no guest was called; Action is that of the remembered
// run.
var ErrUnchanged = errors.New("skipped: nothing it read has changed")

// Memo remembers runs that changed nothing, with the data that they read. It is safe for concurrent use, but not for the same key.
type Memo interface {
	// Recall returns the action of the remembered run of the object if a new run would read the same data, and false otherwise. A requeue
	// is due at the same time as after the remembered run.
	Recall(ctx context.Context, s *Seen, now time.Time) (action abi.Action, same bool)
	// Begin forgets the remembered run because a new one begins, and returns the recorder of what the new one reads. If it returns nil,
	// that run is not remembered.
	Begin(s *Seen) Reading
	// Forget removes an object that is gone.
	Forget(key abi.Key)
}

// Seen is the object as seen by a run. Its bytes must not be changed.
type Seen struct {
	Key                  abi.Key
	UID, ResourceVersion string
	Object               []byte
}

// Reading records what one run reads. It belongs to the goroutine of the run.
type Reading interface {
	// Read is abi.Run.Read.
	Read(abi.Read)
	// Wrote records an accepted write, and whether a watch includes the object. It must not retain w.
	Wrote(w *abi.Write, watched bool)
	// Commit remembers a successful run of a revision, if possible; action is what the run requests from now on.
	Commit(revision uint64, action abi.Action, now time.Time)
}

// recalled reports whether the run can be skipped, and if so, completes it. A run is neither skipped nor remembered if it depends on the
// time, on an earlier failure or on an outdated cache.
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
