package history

import (
	"container/list"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Bounds of what is kept of related objects.
const (
	// maxRelatedEvents is how many events of a related object are kept. What older
	// ones have changed is not known.
	maxRelatedEvents = 4
	// MaxRelatedChanges is how many changes of a related object a run names; a last
	// one says that there are more.
	MaxRelatedChanges = 8
	// relatedSize is what a related object takes beside its states and names.
	relatedSize = 400
)

// RelatedChange is what had changed in an object that a run's reason names.
type RelatedChange struct {
	Resource string // "deployments.apps"
	Key      abi.Key
	// Effect is Created, Changed or Deleted, or Unchanged where its states differ in
	// nothing that the watch has.
	Effect  Effect
	Changes []diff.Change
}

// Related is told of a change of a related object before the requests that it
// leads to. Before and after are packed, as the watch has them, and must not
// change; before is nil for an object that is new, after for one that is gone.
// It compares nothing: that is left to the runs that come of it.
func (r *Recorder) Related(resource string, key abi.Key, at time.Time, before, after []byte) {
	if r.limit <= 0 || len(before)+len(after) > r.related.limit {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.related.add(ident{resource, key}, relatedEvent{at, before, after})
}

// relatedOf returns what had changed in the objects that the reasons name. The
// caller does not hold mu.
func (r *Recorder) relatedOf(reasons *queue.Reasons, since, until time.Time) []RelatedChange {
	var out []RelatedChange
	for i := -1; i < len(reasons.More); i++ {
		reason := reasons.First
		if i >= 0 {
			reason = reasons.More[i]
		}
		if reason.Type != abi.ReasonRelated {
			continue
		}
		r.mu.Lock()
		ev, ok := r.related.between(ident{reason.Resource, reason.Ref}, since, until)
		r.mu.Unlock()
		if ok {
			out = append(out, r.compare(reason, &ev))
		}
	}
	return out
}

func (r *Recorder) compare(reason abi.Reason, ev *relatedEvent) RelatedChange {
	c := RelatedChange{Resource: reason.Resource, Key: reason.Ref, Effect: Unchanged}
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
		if c.Changes, _ = diff.Packed(before, after, diff.Bounds{}); len(c.Changes) > 0 { // what cannot be compared is not shown
			c.Effect = Changed
		}
		if len(c.Changes) > MaxRelatedChanges {
			c.Changes = append(c.Changes[:MaxRelatedChanges:MaxRelatedChanges], diff.Change{Path: diff.More})
		}
	}
	return c
}

// related are the last events of related objects, those that changed last at the
// front. They are not safe for concurrent use.
type related struct {
	limit, size int // bytes
	byIdent     map[ident]*list.Element
	order       *list.List // of *relatedObject
}

type relatedObject struct {
	ident  ident
	events []relatedEvent // the oldest first
}

type relatedEvent struct {
	at            time.Time
	before, after []byte
}

func newRelated(limit int) related {
	return related{limit: limit, byIdent: map[ident]*list.Element{}, order: list.New()}
}

// cost counts a state that is after one event and before the next one twice.
func (o *relatedObject) cost() int {
	n := relatedSize + len(o.ident.resource) + len(o.ident.key.Namespace) + len(o.ident.key.Name)
	for _, ev := range o.events {
		n += len(ev.before) + len(ev.after)
	}
	return n
}

// add keeps an event, and forgets others where there is no room.
func (t *related) add(id ident, ev relatedEvent) {
	e := t.byIdent[id]
	if e == nil {
		e = t.order.PushFront(&relatedObject{ident: id})
		t.byIdent[id] = e
	} else {
		t.size -= e.Value.(*relatedObject).cost()
		t.order.MoveToFront(e)
	}
	o := e.Value.(*relatedObject)
	if len(o.events) == maxRelatedEvents {
		copy(o.events, o.events[1:])
		o.events = o.events[:maxRelatedEvents-1]
	}
	o.events = append(o.events, ev)
	t.size += o.cost()
	for t.size > t.limit && t.order.Len() > 0 {
		oldest := t.order.Back()
		o := oldest.Value.(*relatedObject)
		t.size -= o.cost()
		t.order.Remove(oldest)
		delete(t.byIdent, o.ident)
	}
}

// between returns the events after since, until then, as one; false where none
// is known.
func (t *related) between(id ident, since, until time.Time) (whole relatedEvent, ok bool) {
	e := t.byIdent[id]
	if e == nil {
		return whole, false
	}
	for _, ev := range e.Value.(*relatedObject).events {
		switch {
		case !ev.at.After(since) || ev.at.After(until):
		case ok:
			whole.after = ev.after
		default:
			whole, ok = ev, true
		}
	}
	return whole, ok
}
