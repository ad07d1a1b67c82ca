package abi

import (
	"fmt"
	"slices"
	"time"
)

// Keys of the messages. The order of writing is fixed; the order of reading is
// not.
const (
	keyV           = "v"
	keyID          = "id"
	keyController  = "controller"
	keyReason      = "reason"
	keyType        = "type"
	keyResource    = "resource"
	keyRef         = "ref"
	keyAttempt     = "attempt"
	keyKey         = "key"
	keyNamespace   = "namespace"
	keyName        = "name"
	keyObject      = "object"
	keyStale       = "stale"
	keyConfigGen   = "config_gen"
	keyDeadlineMS  = "deadline_ms"
	keyDryRun      = "dry_run"
	keyCaps        = "caps"
	keyAction      = "action"
	keyAfterMS     = "after_ms"
	keyError       = "error"
	keyClass       = "class"
	keyMessage     = "message"
	keyKind        = "kind"
	keyFirstFailed = "first_failed_ms"

	actionAwait   = "await"
	actionRequeue = "requeue"
)

// AppendRequestHead appends everything of a request but the bytes of its
// object, which must follow where r.Object is not nil. Written this way, an
// object goes from the store into guest memory with one copy.
func AppendRequestHead(dst []byte, r *Request) []byte {
	n := 8
	n += count(r.Stale) + count(r.DryRun) + count(len(r.Caps) > 0) + count(r.Object != nil)
	dst = appendMapHead(dst, n)
	dst = appendInt(appendString(dst, keyV), Version)
	dst = appendString(appendString(dst, keyID), r.ID)
	dst = appendString(appendString(dst, keyController), r.Controller)
	dst = appendReason(appendString(dst, keyReason), &r.Reason)
	dst = appendInt(appendString(dst, keyAttempt), int64(r.Attempt))
	dst = appendKey(appendString(dst, keyKey), r.Key)
	dst = appendInt(appendString(dst, keyConfigGen), r.ConfigGen)
	dst = appendInt(appendString(dst, keyDeadlineMS), unixMS(r.Deadline))
	if r.Stale {
		dst = appendBool(appendString(dst, keyStale), true)
	}
	if r.DryRun {
		dst = appendBool(appendString(dst, keyDryRun), true)
	}
	if len(r.Caps) > 0 {
		dst = appendArrayHead(appendString(dst, keyCaps), len(r.Caps))
		for _, c := range r.Caps {
			dst = appendString(dst, c)
		}
	}
	if r.Object != nil {
		dst = appendString(dst, keyObject)
	}
	return dst
}

// AppendRequest appends the whole message.
func AppendRequest(dst []byte, r *Request) []byte {
	return append(AppendRequestHead(dst, r), r.Object...)
}

// AppendFailureHead is AppendRequestHead for the input of error_policy.
func AppendFailureHead(dst []byte, f *Failure) []byte {
	dst = appendMapHead(dst, 7+count(f.Object != nil))
	dst = appendInt(appendString(dst, keyV), Version)
	dst = appendString(appendString(dst, keyID), f.ID)
	dst = appendKey(appendString(dst, keyKey), f.Key)
	dst = appendError(appendString(dst, keyError), &f.Error)
	dst = appendString(appendString(dst, keyKind), string(f.Kind))
	dst = appendInt(appendString(dst, keyAttempt), int64(f.Attempt))
	dst = appendInt(appendString(dst, keyFirstFailed), unixMS(f.FirstFailed))
	if f.Object != nil {
		dst = appendString(dst, keyObject)
	}
	return dst
}

// AppendFailure appends the whole message.
func AppendFailure(dst []byte, f *Failure) []byte {
	return append(AppendFailureHead(dst, f), f.Object...)
}

// AppendResult appends the message that a guest would return. Hosts do not
// need it; tests and tools do.
func AppendResult(dst []byte, r *Result) []byte {
	if r.Error != nil {
		return appendError(appendString(appendMapHead(dst, 1), keyError), r.Error)
	}
	if !r.Action.Requeue {
		return appendString(appendString(appendMapHead(dst, 1), keyAction), actionAwait)
	}
	dst = appendString(appendString(appendMapHead(dst, 2), keyAction), actionRequeue)
	return appendInt(appendString(dst, keyAfterMS), r.Action.After.Milliseconds())
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func appendKey(dst []byte, k Key) []byte {
	dst = appendMapHead(dst, 1+count(k.Namespace != ""))
	if k.Namespace != "" {
		dst = appendString(appendString(dst, keyNamespace), k.Namespace)
	}
	return appendString(appendString(dst, keyName), k.Name)
}

func appendReason(dst []byte, r *Reason) []byte {
	dst = appendMapHead(dst, 1+2*count(r.Resource != ""))
	dst = appendString(appendString(dst, keyType), string(r.Type))
	if r.Resource != "" {
		dst = appendString(appendString(dst, keyResource), r.Resource)
		dst = appendKey(appendString(dst, keyRef), r.Ref)
	}
	return dst
}

func appendError(dst []byte, e *ResultError) []byte {
	dst = appendMapHead(dst, 2+count(e.Reason != "")+count(e.After > 0))
	dst = appendString(appendString(dst, keyClass), string(e.Class))
	dst = appendString(appendString(dst, keyMessage), e.Message)
	if e.Reason != "" {
		dst = appendString(appendString(dst, keyReason), e.Reason)
	}
	if e.After > 0 {
		dst = appendInt(appendString(dst, keyAfterMS), e.After.Milliseconds())
	}
	return dst
}

// eachKey reads a map and calls f with each key; f reads the value, or returns
// false where it does not know the key, which is then skipped and returned. A
// key that stands twice is an error.
func (r *reader) eachKey(f func(key string) (known bool, err error)) (unknown []string, err error) {
	n, err := r.mapLen()
	if err != nil {
		return nil, err
	}
	var seen keySet
	for range n {
		k, err := r.str()
		if err != nil {
			return nil, err
		}
		key := string(k)
		if !seen.add(key) {
			return nil, fmt.Errorf("%w: key %q stands twice in one map", ErrType, key)
		}
		known, err := f(key)
		if err == nil && !known {
			unknown = append(unknown, key)
			err = r.skip(1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return unknown, nil
}

// keySet is a set that allocates nothing while it is small, and stays fast
// where a hostile message has a million keys.
type keySet struct {
	few  [8]string
	n    int
	many map[string]struct{}
}

// add reports whether the key was not in the set.
func (s *keySet) add(key string) bool {
	if slices.Contains(s.few[:s.n], key) {
		return false
	}
	if s.n < len(s.few) {
		s.few[s.n] = key
		s.n++
		return true
	}
	if s.many == nil {
		s.many = make(map[string]struct{})
	}
	_, twice := s.many[key]
	s.many[key] = struct{}{}
	return !twice
}

func (r *reader) string(dst *string) (bool, error) {
	s, err := r.str()
	*dst = string(s)
	return true, err
}

// millis reads a duration in milliseconds, which must not be negative; one
// that is too long for a time.Duration is clamped.
func (r *reader) millis(dst *time.Duration) (bool, error) {
	ms, err := r.int()
	if err != nil {
		return true, err
	}
	if ms < 0 {
		return true, fmt.Errorf("%w: %d ms is negative", ErrType, ms)
	}
	const limit = int64(1<<63-1) / int64(time.Millisecond)
	*dst = time.Duration(min(ms, limit)) * time.Millisecond
	return true, nil
}
