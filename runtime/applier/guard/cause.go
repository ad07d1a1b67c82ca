// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// cause is the cause of a run.
type cause uint8

const (
	causeOther cause = iota // something other than the last run
	causeAsked              // the time that the last run requested has come
	causeOwn                // only writes of the last run, or writes of other runs that it led to
)

// byOthers reports whether a run has a reason other than the time that the last run requested.
func (s *Start) byOthers() bool {
	asked := func(t abi.ReasonType) bool { return t == abi.ReasonRequeue || t == abi.ReasonRetry }
	return !asked(s.First.Type) || slices.ContainsFunc(s.More, func(r abi.Reason) bool { return !asked(r.Type) })
}

// findCause determines whether a run was caused only by the last run's writes, or by those of other runs that these led to.
func (l *loop) findCause(t *Trial, s *Start, madeBy func(version string) (depth int)) {
	t.cause = causeAsked
	if !l.due.IsZero() && !s.Time.Before(l.due) {
		return
	}
	for i := -1; i < len(s.More); i++ {
		reason := &s.First
		if i >= 0 {
			reason = &s.More[i]
		}
		if reason.Type == abi.ReasonRequeue || reason.Type == abi.ReasonRetry {
			continue // a timer that was absorbed by a change
		}
		at := l.written(s, reason)
		version, own := l.versionOf(s, reason, t.Versions, at)
		depth := madeBy(version)
		switch {
		case depth > l.depth && !own:
			t.chained = true
		case own:
			depth = l.depth + 1
		case at >= 0:
			t.touched, depth = true, 0
		default:
			t.cause, t.depth, t.chained, t.touched = causeOther, 0, false, false
			return
		}
		t.cause, t.depth = causeOwn, max(t.depth, depth)
	}
}

// versionOf returns the version that the object of a reason has in the cache, or its name if it is gone. own reports whether the last run has
// made this version; at is the index of its write to the object, or -1.
func (l *loop) versionOf(s *Start, reason *abi.Reason, versions []string, at int) (version string, own bool) {
	switch {
	case at >= 0:
		w, now := &l.wrote[at], versions[at]
		if own = now == w.ResourceVersion || w.Deleted && now == ""; now == "" {
			now = ObjectName(w)
		}
		return now, own
	case reason.Type == abi.ReasonObjectUpdated:
		return s.ResourceVersion, false
	case reason.Type == abi.ReasonRelated:
		resource, group, _ := strings.Cut(reason.Resource, ".")
		w := abi.Write{Group: group, Resource: resource, Key: reason.Ref}
		return cmp.Or(s.Version(&w), ObjectName(&w)), false
	}
	return "", false
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
