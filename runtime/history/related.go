// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Bounds of the data about related objects.
const (
	// maxRelatedEvents is the number of stored events of a related object. Changes of older
	// events are unknown.
	maxRelatedEvents = 4
	// MaxRelatedChanges is the maximum number of changes of a related object in a run; if
	// there are more, an additional entry says so.
	MaxRelatedChanges = 8
	// relatedSize is the memory of a related object, without its states and names.
	relatedSize = 400
)

// Related is the change of an object that a reason of a run names.
type Related struct {
	Resource string `json:"resource"` // "deployments.apps"
	Object   Object `json:"object"`
	// Effect is Created, Changed or Deleted, or Unchanged if the watch shows no difference
	// between the states: some watches have only the metadata.
	Effect  Effect        `json:"effect"`
	Changes []diff.Change `json:"changes,omitempty"`
}

// Related records a change of a related object. It must be called before the requests that
// the change causes. before and after are packed, as the watch has them, and must not
// change; before is nil for a new object, and after for one that is gone. The comparison is
// left to the runs that the change causes.
func (r *Recorder) Related(resource string, key abi.Key, at time.Time, before, after []byte) {
	if r.limit <= 0 || len(before)+len(after) > r.related.limit {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addRelated(ident{resource, key}, relatedEvent{at, before, after})
}

// relatedOf returns the changes of the objects that the reasons name. The caller must not
// hold mu.
func (r *Recorder) relatedOf(reasons *queue.Reasons, since, until time.Time) []Related {
	var out []Related
	for i := -1; i < len(reasons.More); i++ {
		reason := reasons.First
		if i >= 0 {
			reason = reasons.More[i]
		}
		if reason.Type != abi.ReasonRelated {
			continue
		}
		r.mu.Lock()
		ev, ok := between(r.related.get(ident{reason.Resource, reason.Ref}), since, until)
		r.mu.Unlock()
		if ok {
			out = append(out, r.compare(reason, &ev))
		}
	}
	return out
}

func (r *Recorder) compare(reason abi.Reason, ev *relatedEvent) Related {
	c := Related{Resource: reason.Resource, Object: Object{reason.Ref}, Effect: Unchanged}
	switch {
	case ev.after == nil:
		c.Effect = Deleted
	case ev.before == nil:
		c.Effect = Created
	default:
		before, after := ev.before, ev.after
		if r.Shown != nil {
			before, after = r.Shown(reason.Resource, before), r.Shown(reason.Resource, after)
		}
		if c.Changes, _ = diff.Packed(before, after, diff.Bounds{}); len(c.Changes) > 0 { // if they cannot be compared, no change is shown
			c.Effect = Changed
		}
		if len(c.Changes) > MaxRelatedChanges {
			c.Changes = append(c.Changes[:MaxRelatedChanges:MaxRelatedChanges], diff.Change{Path: diff.More})
		}
	}
	return c
}

// relatedEvent is a change of a related object.
type relatedEvent struct {
	at            time.Time
	before, after []byte
}

// addRelated stores an event. The caller holds mu.
func (r *Recorder) addRelated(id ident, ev relatedEvent) {
	o := r.related.use(id)
	if len(o.value) == maxRelatedEvents {
		o.value = slices.Delete(o.value, 0, 1)
	}
	o.value = append(o.value, ev)
	size := relatedSize + id.size()
	for _, ev := range o.value { // a state that is after one event and before the next one counts twice
		size += len(ev.before) + len(ev.after)
	}
	r.related.resize(o, size)
}

// between merges the events after since and not after until into one; ok is false if none
// is known.
func between(events *[]relatedEvent, since, until time.Time) (merged relatedEvent, ok bool) {
	if events == nil {
		return merged, false
	}
	for _, ev := range *events {
		switch {
		case !ev.at.After(since) || ev.at.After(until):
		case ok:
			merged.after = ev.after
		default:
			merged, ok = ev, true
		}
	}
	return merged, ok
}
