package watcher

import (
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the state of a watch. It says nothing about the store, which keeps
// what it has in every phase.
type Phase uint8

const (
	// Syncing is while the list is being read. Goes on to Ready when it is in the
	// store and the watch is open, or to one of the others.
	Syncing Phase = iota
	// Ready is when the list is in the store and changes arrive. Stays here while
	// the API server ends watches in good order, as it does every few minutes.
	Ready
	// Denied is after the API server answered 403. Waits for someone to grant the verbs;
	// asks again at least every 5 s.
	Denied
	// Absent is while the API server does not have the resource (404), or not in
	// the version that is watched. Waits for its CustomResourceDefinition; asks
	// again at least every 5 s. A CRD that is deleted deletes its objects first, so
	// their deletions have come; what is in the store still is of a version that is
	// not served, and is compared with the list when it is again.
	Absent
	// Failing is while the API server cannot be reached or fails. Tries again
	// after 0.8 s, doubling to 30 s, plus up to as much again at random; it starts
	// from 0.8 s again every two minutes and after a watch that lived for 10 s.
	Failing
)

// String returns the phase in lower case.
func (p Phase) String() string {
	return [...]string{"syncing", "ready", "denied", "absent", "failing"}[p]
}

// State is the state of one watch at one moment (rule 13).
type State struct {
	Phase Phase
	// Since is when the phase began.
	Since time.Time
	// LastProgress is when the API server last sent an event, a bookmark or a
	// list; zero where it never did. Liveness is judged by it (rule 14).
	LastProgress time.Time
	// LastAttempt is when the last request was sent or failed; zero before the
	// watch is started.
	LastAttempt time.Time
	// Objects is how many objects the store has or, before the first list is
	// complete, how many of it have arrived.
	Objects int
	// Bytes is the length of the store's objects, as they are packed.
	Bytes int64
	// Compressed is how many of the objects are compressed, and Saved how many bytes
	// less they take by that; both as of the last minute.
	Compressed int
	Saved      int64
	// Err is the last failure; nil in Ready, and in Syncing before a failure.
	Err error
	// Failures counts failed requests since the watch was last ready.
	Failures int
	// Message says for a user what the phase waits for.
	Message string
}

// String returns the state for a user: "ready: 312 objects".
func (s State) String() string {
	switch s.Phase {
	case Syncing:
		return fmt.Sprintf("syncing: %d objects so far", s.Objects)
	case Ready:
		return fmt.Sprintf("ready: %d objects", s.Objects)
	default:
		return fmt.Sprintf("%s: %s", s.Phase, s.Message)
	}
}

// stallAfter is longer than all that a watch waits for: the end of a watch
// request in which nothing comes, and then the longest back-off.
const stallAfter = maxWatchTimeout + watchMargin + 2*time.Minute

// Stalled reports whether the watch has stalled: for longer than any of its
// timeouts, it has neither received anything from the API server nor sent a
// request (rule 14). Only a new start of the process helps then, which is what a
// liveness check is for. A watch that is denied, absent or failing is not
// stalled: it goes on asking, and restarting would take nothing but its cache.
// Whether a watch is of use is said by Phase; how old its news may be, by
// LastProgress: a quiet API server sends a bookmark about every minute, and a
// watch that is ready is renewed after ten minutes at most.
func (s State) Stalled(now time.Time) bool {
	last := s.LastAttempt
	if s.LastProgress.After(last) {
		last = s.LastProgress
	}
	return !s.LastAttempt.IsZero() && now.Sub(last) > stallAfter
}

// Failures of a stream that are no status of the API server.
var (
	errShortWatch = errors.New("the API server ends the watch immediately")
	errNoAnswer   = errors.New("the API server has not answered in time: the connection is dead, or a proxy has lost the server")
	errCutList    = fmt.Errorf("the list was cut off: %w", io.ErrUnexpectedEOF)
)

// phaseOf returns the phase that a failed request leads to, and its message.
// There is none for an error that belongs to the protocol: an expired or too
// new resourceVersion means "list again", and a server that refuses to stream
// a list is asked for a plain one.
func phaseOf(source Source, err error, streaming bool) (p Phase, message string, ok bool) {
	switch {
	case isExpired(err), streaming && apierrors.IsInvalid(err):
		return 0, "", false
	case apierrors.IsForbidden(err):
		where := ""
		if source.Namespace != "" {
			where = " in namespace " + source.Namespace
		}
		return Denied, fmt.Sprintf("needs the verbs list and watch on %s%s: grant them with a role (%v)", source.Name(), where, err), true
	case apierrors.IsNotFound(err):
		return Absent, fmt.Sprintf("the API server has no %s of version %s: waiting for it", source.Name(), source.Resource.Version), true
	}
	return Failing, err.Error(), true
}

// isExpired reports whether the resourceVersion that was asked for is too old
// (410) or newer than the server's: client-go's reflector lists again.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
