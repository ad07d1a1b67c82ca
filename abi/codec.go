// SPDX-License-Identifier: Apache-2.0

package abi

import "time"

// Keys of the messages. They are written in a fixed order, and may be read in any order.
const (
	keyV           = "v"
	keyID          = "id"
	keyController  = "controller"
	keyReason      = "reason"
	keyReasons     = "reasons"
	keyDropped     = "reasons_dropped"
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
	keyApply       = "apply"
	keyPrune       = "prune"
	keyForce       = "force"
	keyStatus      = "status"
	keyKeys        = "keys"
	keyWatch       = "watch"
	keyGroup       = "group"
	keyVersion     = "version"
	keyOld         = "old"
	keyNew         = "new"
	keyConfig      = "config"
	keyWebhook     = "webhook"
	keyOperation   = "operation"
	keyTarget      = "target"
	keyRequested   = "requested"
	keySubresource = "subresource"
	keyUser        = "user"
	keyUsername    = "username"
	keyUID         = "uid"
	keyGroups      = "groups"
	keyExtra       = "extra"
	keyOptions     = "options"
	keyDenied      = "denied"
	keyCode        = "code"
	keyCauses      = "causes"
	keyField       = "field"
	keyBase        = "base"
	keyWarnings    = "warnings"
	keyAudit       = "audit"
	keyTo          = "to"
	keyObjects     = "objects"

	actionAwait   = "await"
	actionRequeue = "requeue"
)

// AppendRequestHead appends everything of a request except the bytes of its object, which the caller must append if r.Object is not nil.
// This way, an object is copied only once from the store to guest memory.
func AppendRequestHead(dst []byte, r *Request) []byte {
	n := 8
	n += count(r.Stale) + count(r.DryRun) + count(len(r.Caps) > 0) + count(r.Object != nil)
	n += count(len(r.More) > 0) + count(r.Dropped > 0)
	dst = AppendMapHead(dst, n)
	dst = AppendInt(appendString(dst, keyV), Version)
	dst = appendString(appendString(dst, keyID), r.ID)
	dst = appendString(appendString(dst, keyController), r.Controller)
	dst = appendReason(appendString(dst, keyReason), &r.Reason)
	dst = appendReasons(dst, r.More, r.Dropped)
	dst = AppendInt(appendString(dst, keyAttempt), int64(r.Attempt))
	dst = appendKey(appendString(dst, keyKey), r.Key)
	dst = AppendInt(appendString(dst, keyConfigGen), r.ConfigGen)
	dst = AppendInt(appendString(dst, keyDeadlineMS), unixMS(r.Deadline))
	if r.Stale {
		dst = appendBool(appendString(dst, keyStale), true)
	}
	if r.DryRun {
		dst = appendBool(appendString(dst, keyDryRun), true)
	}
	if len(r.Caps) > 0 {
		dst = appendStrings(appendString(dst, keyCaps), r.Caps)
	}
	if r.Object != nil {
		dst = appendString(dst, keyObject)
	}
	return dst
}

// AppendRequest appends the complete message.
func AppendRequest(dst []byte, r *Request) []byte {
	return append(AppendRequestHead(dst, r), r.Object...)
}

// AppendFailureHead is like AppendRequestHead, for the input of error_policy.
func AppendFailureHead(dst []byte, f *Failure) []byte {
	dst = AppendMapHead(dst, 7+count(f.Object != nil))
	dst = AppendInt(appendString(dst, keyV), Version)
	dst = appendString(appendString(dst, keyID), f.ID)
	dst = appendKey(appendString(dst, keyKey), f.Key)
	dst = appendError(appendString(dst, keyError), &f.Error)
	dst = appendString(appendString(dst, keyKind), string(f.Kind))
	dst = AppendInt(appendString(dst, keyAttempt), int64(f.Attempt))
	dst = AppendInt(appendString(dst, keyFirstFailed), unixMS(f.FirstFailed))
	if f.Object != nil {
		dst = appendString(dst, keyObject)
	}
	return dst
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

func appendStrings(dst []byte, list []string) []byte {
	dst = AppendArrayHead(dst, len(list))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

func appendKey(dst []byte, k Key) []byte {
	dst = AppendMapHead(dst, 1+count(k.Namespace != ""))
	if k.Namespace != "" {
		dst = appendString(appendString(dst, keyNamespace), k.Namespace)
	}
	return appendString(appendString(dst, keyName), k.Name)
}

func appendReason(dst []byte, r *Reason) []byte {
	dst = AppendMapHead(dst, 1+2*count(r.Resource != ""))
	dst = appendString(appendString(dst, keyType), string(r.Type))
	if r.Resource != "" {
		dst = appendString(appendString(dst, keyResource), r.Resource)
		dst = appendKey(appendString(dst, keyRef), r.Ref)
	}
	return dst
}

func appendReasons(dst []byte, more []Reason, dropped int) []byte {
	if len(more) > 0 {
		dst = AppendArrayHead(appendString(dst, keyReasons), len(more))
		for i := range more {
			dst = appendReason(dst, &more[i])
		}
	}
	if dropped > 0 {
		dst = AppendInt(appendString(dst, keyDropped), int64(dropped))
	}
	return dst
}

func appendError(dst []byte, e *ResultError) []byte {
	dst = AppendMapHead(dst, 2+count(e.Reason != "")+count(e.After > 0))
	dst = appendString(appendString(dst, keyClass), string(e.Class))
	dst = appendString(appendString(dst, keyMessage), e.Message)
	if e.Reason != "" {
		dst = appendString(appendString(dst, keyReason), e.Reason)
	}
	if e.After > 0 {
		dst = AppendInt(appendString(dst, keyAfterMS), e.After.Milliseconds())
	}
	return dst
}
