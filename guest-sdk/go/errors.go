package wasmctl

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Statuses of the host (abi/ABI.md, section 7). Above 0 are HTTP codes.
const (
	StatusUnsupported = -1 // the host does not have this operation
	StatusDenied      = -2 // no capability; Error.Rule is what is missing
	StatusBadRequest  = -3 // the request cannot be understood
	StatusTooLarge    = -4 // request or answer is over a limit
	StatusBudget      = -5 // the call has used up what it may use
	StatusCancelled   = -6 // the host is stopping, or the run's time is over
	StatusUnavailable = -7 // the API server cannot be reached; try again later
	StatusNotSynced   = -8 // the cache is not filled yet
	StatusInternal    = -9 // a fault of the host
)

// Error is the answer of a call to the host that failed.
type Error struct {
	// Op is the operation, "api_get".
	Op string
	// Ref names the object, as far as the call named it.
	Ref ObjectRef
	// Status is the API server's HTTP code, or below 0 the host's own.
	Status int
	// Reason is a CamelCase word for programs, "NotFound"; may be empty.
	Reason string
	// Message is for people.
	Message string
	// Rule is set if Status is StatusDenied. It is the capability that is
	// missing in the module's manifest, or in the operator's grant.
	Rule *Capability
	// Details are those of the API server's answer: the names of fields that it
	// does not accept, for example.
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

// AsError returns the *Error that err is or wraps, as errors.As does, without
// reflection.
func AsError(err error) (*Error, bool) { return as[*Error](err) }

func hasStatus(err error, status int) bool {
	e, ok := as[*Error](err)
	return ok && e.Status == status
}

// as finds the first error of type T that err is or wraps.
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

// IsConflict reports whether somebody else wrote first. A resourceVersion or a
// precondition does not match, or another manager owns a field. It is not true
// for IsAlreadyExists.
func IsConflict(err error) bool { return hasStatus(err, 409) && !IsAlreadyExists(err) }

// IsAlreadyExists reports whether an object of that name exists already.
func IsAlreadyExists(err error) bool {
	e, ok := as[*Error](err)
	return ok && e.Status == 409 && e.Reason == "AlreadyExists"
}

// IsInvalid reports whether the API server refused the object as invalid.
func IsInvalid(err error) bool { return hasStatus(err, 422) }

// IsForbidden reports whether the API server's own rules (RBAC, admission)
// forbid the call; see IsDenied for those of the host.
func IsForbidden(err error) bool { return hasStatus(err, 403) }

// IsDenied reports whether the module lacks the capability for this call;
// Error.Rule is the missing one.
func IsDenied(err error) bool { return hasStatus(err, StatusDenied) }

// IsUnsupported reports whether the host does not have this operation.
func IsUnsupported(err error) bool { return hasStatus(err, StatusUnsupported) }

// IsUnavailable reports whether the API server cannot be reached now, or asks
// for a pause.
func IsUnavailable(err error) bool {
	return hasStatus(err, StatusUnavailable) || hasStatus(err, 503) || hasStatus(err, 429)
}

// IsNotSynced reports whether the host's cache is not filled yet. Retry the run
// soon.
func IsNotSynced(err error) bool { return hasStatus(err, StatusNotSynced) }

// IsGone reports whether the API server no longer has that state. That happens
// to the later pages of a list that takes minutes: list again.
func IsGone(err error) bool { return hasStatus(err, 410) }

// IsCancelled reports whether the host is stopping or the run's time is over.
func IsCancelled(err error) bool { return hasStatus(err, StatusCancelled) }

// ErrorClass says how an error of Reconcile is retried.
type ErrorClass string

// The classes of errors.
const (
	ErrorTransient ErrorClass = "transient" // try again after the back-off; what a plain error is
	ErrorPermanent ErrorClass = "permanent" // wait for a change
	ErrorConflict  ErrorClass = "conflict"  // somebody else wrote first; what a 409 of the Client is
)

// FailureKind says how a run failed.
type FailureKind string

// The kinds of failure.
const (
	FailureError   FailureKind = "error"   // Reconcile returned an error
	FailureTrap    FailureKind = "trap"    // Reconcile panicked or exited
	FailureTimeout FailureKind = "timeout" // the run took longer than it may
	FailureMemory  FailureKind = "memory"  // the run needed more memory than it may have
	FailureOutput  FailureKind = "output"  // what the module returned cannot be read
)

// Failure is a failed run, as ErrorPolicy receives it.
type Failure struct {
	Kind  FailureKind
	Class ErrorClass
	// Message and Reason are those of the error that Reconcile returned, or
	// those of the host.
	Message, Reason string
	// After is the time of RetryAfter, or 0.
	After time.Duration
	// Attempt counts the failed runs in a row, from 1.
	Attempt int
	// FirstFailed is when the first of them ended.
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
// for a change, whatever ErrorPolicy returns. It returns nil for nil.
func Permanent(err error) error { return qualify(qualified{err: err, class: ErrorPermanent}) }

// Conflict marks err as a conflict: somebody else wrote first. The host retries
// at once, a few times. A 409 error of the Client is a conflict without this
// mark. It returns nil for nil.
func Conflict(err error) error { return qualify(qualified{err: err, class: ErrorConflict}) }

// RetryAfter asks for a retry after d, if there is no ErrorPolicy that decides
// otherwise. It returns nil for nil.
func RetryAfter(err error, d time.Duration) error { return qualify(qualified{err: err, after: d}) }

// WithReason adds a CamelCase reason to err, which appears in logs, metrics and
// Failure.Reason. It returns nil for nil.
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

// maxKeys is how many objects one event may concern (abi/ABI.md).
const maxKeys = 10_000

// maxMessage bounds the message of an error, in bytes: it goes into logs.
const maxMessage = 32 << 10

// failed starts a Result with an error (abi/ABI.md, section 4).
func failed(dst []byte, err error) wire.Builder {
	b := wire.NewBuilder(dst)
	b.Map("error", func(e *wire.Builder) { describeError(e, err) })
	return b
}

// describeError writes what the host is to know of err.
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

// clip makes a text valid for a message: bounded, and UTF-8.
func clip(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// classify gathers what the layers of err say; the outermost wins.
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
