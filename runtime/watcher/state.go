// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the phase of a watch. It is independent of the store, which keeps its content in every phase.
type Phase uint8

const (
	// Syncing means that the list is being read. The next phase is Ready, once the list is in the store and the watch is open, or one of
	// the others.
	Syncing Phase = iota
	// Ready means that the list is in the store and changes arrive. The phase does not change when the API server ends a watch normally, as
	// it does every few minutes.
	Ready
	// Denied means that the API server has answered 403. The watch needs a role that grants its verbs; it retries at least every 5 s.
	Denied
	// Absent means that the API server does not have the resource, or not in the watched version (404). The watch waits for its
	// CustomResourceDefinition, and retries at least every 5 s. Deleting a CRD deletes its objects first, so their deletions have arrived;
	// any objects still in the store have a version that is no longer served, and are compared with the list once it is served again.
	Absent
	// Failing means that the API server is unreachable or fails. The watch retries after 0.8 s, doubling to 30 s, plus up to 100 percent of
	// jitter; the delay starts from 0.8 s again every two minutes, and after a watch that lasted 10 s.
	Failing
	// Refused means that the objects, or the number of watches, exceed a bound of the tenant. The store keeps its objects, which become
	// outdated. The watch lists again after 5 s, doubling to a minute, plus up to 100 percent of
	// jitter.
	Refused
)

// String returns the phase in lower case.
func (p Phase) String() string {
	return [...]string{"syncing", "ready", "denied", "absent", "failing", "refused"}[p]
}

// State is a snapshot of the state of one watch (rule 13).
type State struct {
	Phase Phase
	// Since is when the phase began.
	Since time.Time
	// LastProgress is when the API server last sent an event, a bookmark or a list; zero if it never did. It is the basis for liveness
	// (rule 14).
	LastProgress time.Time
	// LastAttempt is when the last request was sent or failed; zero before the watch is started.
	LastAttempt time.Time
	// Objects is the number of objects in the store or, before the first list is complete, of those that have arrived.
	Objects int
	// Bytes is the total size of the packed objects in the store.
	Bytes int64
	// Compressed is the number of compressed objects, and Saved the number of bytes that this saves; both as of the last minute.
	Compressed int
	Saved      int64
	// Err is the last failure; nil in Ready, and in Syncing before a failure.
	Err error
	// Failures is the number of failed requests since the watch was last ready.
	Failures int
	// Message tells a user what the phase waits for.
	Message string
}

// String returns the state for a user, such as "ready: 312 objects".
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

// stallAfter is longer than everything that a watch waits for: the end of a silent watch request, followed by the longest back-off.
const stallAfter = maxWatchTimeout + watchMargin + 2*refusedCap

// Stalled reports whether the watch has stalled: for longer than any of its timeouts, it has neither received anything from the API server
// nor sent a request (rule 14). Only a restart of the process helps then, which is the purpose of a liveness check. A watch that is denied,
// absent, failing or refused is not stalled: it retries, and a restart would only discard its cache. Use Phase to tell whether a watch
// works, and LastProgress to tell how old its data may be: a quiet API server sends a bookmark about every minute, and a ready watch is
// renewed after at most ten minutes.
func (s State) Stalled(now time.Time) bool {
	last := s.LastAttempt
	if s.LastProgress.After(last) {
		last = s.LastProgress
	}
	return !s.LastAttempt.IsZero() && now.Sub(last) > stallAfter
}

// Failures of a stream that are not a status of the API server.
var (
	errShortWatch = errors.New("the API server ends the watch immediately")
	errNoAnswer   = errors.New("the API server has not answered in time: the connection is dead, or a proxy has lost the server")
	errCutList    = fmt.Errorf("the list was cut off: %w", io.ErrUnexpectedEOF)
)

// phaseOf returns the phase that results from a failed request, and its message. It returns false for errors that are part of the protocol:
// an expired or too new resourceVersion means "list again", and a server that does not support streaming lists is asked for a plain one.
func phaseOf(source Source, err error, streaming bool) (p Phase, message string, ok bool) {
	if bound, ok := errors.AsType[*boundError](err); ok {
		return Refused, bound.message, true
	}
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

// isExpired reports whether the requested resourceVersion is too old (410) or newer than the server's: client-go's reflector lists again.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
