// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Status codes of the host (abi/ABI.md, section 7). Positive codes are HTTP
// codes of the API server.
const (
	StatusUnsupported = -1 // the host does not have this operation
	StatusDenied      = -2 // the module lacks a capability, see Error.Rule
	StatusBadRequest  = -3 // the host cannot parse the request
	StatusTooLarge    = -4 // request or answer is over a limit
	StatusBudget      = -5 // the call has used up its budget
	StatusCancelled   = -6 // the host is stopping, or the run's time is over
	StatusUnavailable = -7 // the API server cannot be reached; try again later
	StatusNotSynced   = -8 // the cache is not filled yet
	StatusInternal    = -9 // the host has a bug or an internal failure
)

// Error is a failed call to the host.
type Error struct {
	// Op is the operation, for example "api_get".
	Op string
	// Ref names the object, as far as the call named it. It may be incomplete.
	Ref ObjectRef
	// Status is the API server's HTTP code, or a negative code of the host.
	Status int
	// Reason is a CamelCase word for programs, for example "NotFound"; it may
	// be empty.
	Reason string
	// Message is for people.
	Message string
	// Rule is set if Status is StatusDenied. It is the capability that is
	// missing in the module's manifest, or in the operator's grant.
	Rule *Capability
	// Details are the details of the API server's answer, for example the names
	// of the fields that it does not accept.
	Details Value
}

// Error implements error: "api_get ConfigMap[default/a]: NotFound: ...".
func (e *Error) Error() string {
	s := e.Op
	if e.Ref.Kind != "" {
		s += " " + e.Ref.String()
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	} else {
		s += ": status " + strconv.Itoa(e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// AsError returns the first *Error in the chain of err, like errors.As, but
// without reflection.
func AsError(err error) (*Error, bool) { return as[*Error](err) }

func hasStatus(err error, status int) bool {
	e, ok := as[*Error](err)
	return ok && e.Status == status
}

// as finds the first error of type T in the chain of err.
func as[T error](err error) (found T, ok bool) {
	for err != nil {
		if found, ok = err.(T); ok { //nolint:errorlint // this is the walk itself
			return found, true
		}
		switch e := err.(type) { //nolint:errorlint // as above
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				if found, ok = as[T](inner); ok {
					return found, true
				}
			}
			return found, false
		default:
			return found, false
		}
	}
	return found, false
}

// IsNotFound reports whether the object, or its kind, does not exist.
func IsNotFound(err error) bool { return hasStatus(err, 404) }

// IsConflict reports whether another client wrote first: a resourceVersion or a
// precondition does not match, or another manager owns a field. It is false for
// IsAlreadyExists.
func IsConflict(err error) bool { return hasStatus(err, 409) && !IsAlreadyExists(err) }

// IsAlreadyExists reports whether an object of that name already exists.
func IsAlreadyExists(err error) bool {
	e, ok := as[*Error](err)
	return ok && e.Status == 409 && e.Reason == "AlreadyExists"
}

// IsInvalid reports whether the API server refused the object as invalid.
func IsInvalid(err error) bool { return hasStatus(err, 422) }

// IsForbidden reports whether the API server's own rules (RBAC, admission)
// forbid the call. IsDenied is the counterpart for the rules of the host.
func IsForbidden(err error) bool { return hasStatus(err, 403) }

// IsDenied reports whether the module lacks the capability for this call;
// Error.Rule is the missing capability.
func IsDenied(err error) bool { return hasStatus(err, StatusDenied) }

// IsUnsupported reports whether the host does not have this operation.
func IsUnsupported(err error) bool { return hasStatus(err, StatusUnsupported) }

// IsUnavailable reports whether the API server cannot be reached now, or asks
// clients to wait.
func IsUnavailable(err error) bool {
	return hasStatus(err, StatusUnavailable) || hasStatus(err, 503) || hasStatus(err, 429)
}

// IsNotSynced reports whether the host's cache is not filled yet. Retry the run
// soon.
func IsNotSynced(err error) bool { return hasStatus(err, StatusNotSynced) }

// IsGone reports whether the API server no longer has the requested version of
// the list. This happens to the later pages of a list that takes minutes: start
// the list again.
func IsGone(err error) bool { return hasStatus(err, 410) }

// IsCancelled reports whether the host is stopping or the run's time is over.
func IsCancelled(err error) bool { return hasStatus(err, StatusCancelled) }

// ErrorClass determines how the host retries a run that returned an error.
type ErrorClass string

// The classes of errors.
const (
	ErrorTransient ErrorClass = "transient" // retry after the back-off; the class of a plain error
	ErrorPermanent ErrorClass = "permanent" // wait for a change
	ErrorConflict  ErrorClass = "conflict"  // another client wrote first; the class of a 409 from the Client
)

// FailureKind is the way in which a run failed.
type FailureKind string

// The kinds of failure.
const (
	FailureError   FailureKind = "error"   // Reconcile returned an error
	FailureTrap    FailureKind = "trap"    // Reconcile panicked or exited
	FailureTimeout FailureKind = "timeout" // the run exceeded its time limit
	FailureMemory  FailureKind = "memory"  // the run exceeded its memory limit
	FailureOutput  FailureKind = "output"  // the host cannot decode the module's result
)

// Failure describes a failed run to ErrorPolicy.
type Failure struct {
	Kind  FailureKind
	Class ErrorClass
	// Message and Reason come from the error that Reconcile returned, or from
	// the host.
	Message, Reason string
	// After is the time given to RetryAfter, or 0.
	After time.Duration
	// Attempt counts the failed runs in a row, from 1.
	Attempt int
	// FirstFailed is the end of the first of these failed runs.
	FirstFailed time.Time
}

// qualified is an error with details for the host.
type qualified struct {
	err    error
	class  ErrorClass
	reason string
	after  time.Duration
}

func (q *qualified) Error() string { return q.err.Error() }

func (q *qualified) Unwrap() error { return q.err }

// Permanent marks err as an error that a retry does not fix. The object waits
// for a change, whatever ErrorPolicy returns. Permanent(nil) is nil.
func Permanent(err error) error { return qualify(qualified{err: err, class: ErrorPermanent}) }

// Conflict marks err as a conflict: another client wrote first. The host
// retries at once, a few times. A 409 error of the Client is a conflict without
// this mark. Conflict(nil) is nil.
func Conflict(err error) error { return qualify(qualified{err: err, class: ErrorConflict}) }

// RetryAfter asks for a retry after d, unless an ErrorPolicy decides otherwise.
// RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return qualify(qualified{err: err, after: d}) }

// WithReason adds a CamelCase reason to err, which appears in logs, metrics and
// Failure.Reason. WithReason(nil, reason) is nil.
func WithReason(err error, reason string) error { return qualify(qualified{err: err, reason: reason}) }

func qualify(q qualified) error {
	if q.err == nil {
		return nil
	}
	return &q
}

var (
	errMessage        = errors.New("request[]: cannot be understood")
	errNotRegistered  = errors.New("module: no reconciler; call wasmctl.Register in an init function")
	errNoFunction     = errors.New("module: no function for this call; the manifest's hooks list the functions")
	errTooManyKeys    = errors.New("map: more than 10000 keys")
	errPolicyDeclares = errors.New("error_policy: the Action declares objects or a status; only Reconcile and Finalize may")
)

// maxKeys is the most objects that one event may select (abi/ABI.md).
const maxKeys = 10_000

// maxMessage bounds the message of an error, in bytes, because it goes into
// logs.
const maxMessage = 32 << 10

// failed starts a Result with an error (abi/ABI.md, section 4).
func failed(dst []byte, err error) wire.Builder {
	b := wire.NewBuilder(dst)
	b.Map("error", func(e *wire.Builder) { describeError(e, err) })
	return b
}

// describeError writes the parts of err that the host uses.
func describeError(e *wire.Builder, err error) {
	q := classify(err)
	e.String("class", string(q.class))
	e.Text("message", clip(err.Error()))
	e.String("reason", clip(q.reason))
	e.Int("after_ms", millis(q.after))
}

// appendFailed writes a Result with an error and nothing else.
func appendFailed(dst []byte, err error) []byte {
	b := failed(dst, err)
	return b.End()
}

// clip makes a text valid for a message: it truncates the text and replaces
// invalid UTF-8.
func clip(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// classify merges the marks in the chain of err; the outermost mark wins.
func classify(err error) qualified {
	all := qualified{err: err}
	for q, ok := as[*qualified](err); ok; q, ok = as[*qualified](q.err) {
		if all.class == "" {
			all.class = q.class
		}
		if all.reason == "" {
			all.reason = q.reason
		}
		if all.after == 0 {
			all.after = q.after
		}
	}
	if api, ok := as[*Error](err); ok {
		if all.reason == "" {
			all.reason = api.Reason
		}
		if all.class == "" && api.Status == 409 {
			all.class = ErrorConflict
		}
	}
	if all.class == "" {
		all.class = ErrorTransient
	}
	return all
}
