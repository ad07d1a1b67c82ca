// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"hash/maphash"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// DefaultTTL is how long changes of an object can be hidden before the next event passes although nothing relevant has changed. kube-rs
// uses the same value.
const DefaultTTL = time.Hour

// Options are the settings of a Filter that come from the program, not from a manifest.
type Options struct {
	// Always lists annotations whose changes always pass: a module's predicates must not hide instructions of a user to the host.
	Always []string
	// OnHidden, if not nil, is called for each event that the Filter hides, with the predicates that it compared. It is called from the
	// goroutine of the watch and must be quick.
	OnHidden func(ref reflector.ObjectRef, unchanged Words)
}

// Filter hides events. Make one with Parse; a nil Filter hides nothing. It is not safe for concurrent use: it belongs to the goroutine of
// the watch.
type Filter struct {
	term   term
	uses   Words // without Func
	ttl    time.Duration
	opts   Options
	passed *memory // nil without a TTL
}

// Check returns the verdict on an event. An object that was created, listed for the first time, deleted or replaced by one with another uid
// passes, unless the guest's filter decides. For a change, the predicates decide; a change that they would hide passes if no change of that
// object has passed within the TTL.
func (f *Filter) Check(now time.Time, ev reflector.Event) Verdict {
	if f == nil {
		return Pass
	}
	if ev.Type == reflector.Deleted {
		f.passed.forget(ev.Old)
		return f.term.eval(f.uses)
	}
	verdict, unchanged := f.compare(ev)
	if verdict == Hide && f.passed.expired(now, ev.New) {
		verdict = f.term.eval(f.uses)
	}
	switch {
	case verdict != Hide:
		f.passed.record(now, ev.New)
	case f.opts.OnHidden != nil:
		f.opts.OnHidden(ev.Ref(), unchanged)
	}
	return verdict
}

// compare returns the verdict on an existing object, and the predicates that saw no change.
func (f *Filter) compare(ev reflector.Event) (verdict Verdict, unchanged Words) {
	if ev.Old == nil || ev.Old.UID() != ev.New.UID() {
		return f.term.eval(f.uses), 0
	}
	passes := f.changed(ev.Old, ev.New)
	if verdict = f.term.eval(passes); verdict != Pass && f.always(ev.Old, ev.New) {
		verdict = Pass
	}
	return verdict, f.uses &^ passes
}

// always reports whether one of Options.Always has changed.
func (f *Filter) always(old, now *reflector.Object) bool {
	for _, key := range f.opts.Always {
		before, had := old.Annotation(key)
		after, has := now.Annotation(key)
		if before != after || had != has {
			return true
		}
	}
	return false
}

// changed returns the predicates in use that let a change pass.
func (f *Filter) changed(old, now *reflector.Object) Words {
	var w Words
	if f.uses&Generation != 0 && (now.Generation() == 0 || now.Generation() != old.Generation()) {
		w |= Generation
	}
	if f.uses&ResourceVersion != 0 && (now.ResourceVersion() == "" || now.ResourceVersion() != old.ResourceVersion()) {
		w |= ResourceVersion
	}
	if f.uses&Labels != 0 && !sameLabels(old.Labels(), now.Labels()) {
		w |= Labels
	}
	// MapsAlike detects unchanged annotations quickly, without a copy.
	if f.uses&Annotations != 0 && !old.MapsAlike(now) && hashAnnotations(old) != hashAnnotations(now) {
		w |= Annotations
	}
	if f.uses&Finalizers != 0 && hashFinalizers(old) != hashFinalizers(now) {
		w |= Finalizers
	}
	if f.uses&Deletion != 0 && now.Deleting() != old.Deleting() {
		w |= Deletion
	}
	return w
}

func sameLabels(a, b reflector.Labels) bool {
	if a.Len() != b.Len() {
		return false
	}
	for k, v := range a.All() {
		if w, ok := b.Lookup(k); !ok || v != w {
			return false
		}
	}
	return true
}

var seed = maphash.MakeSeed()

// hashAnnotations returns a hash of the annotations. Annotations are sorted by key, and different ones collide once in 2^64 pairs.
func hashAnnotations(o *reflector.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for k, v := range o.Annotations() {
		writeString(&h, k)
		writeString(&h, v)
	}
	return h.Sum64()
}

func hashFinalizers(o *reflector.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for name := range o.Finalizers() {
		writeString(&h, name)
	}
	return h.Sum64()
}

// writeString writes a string and a terminator, which prevents two strings from being confused with their concatenation: 0xff is no byte of
// UTF-8.
func writeString(h *maphash.Hash, s string) {
	_, _ = h.WriteString(s)
	_ = h.WriteByte(0xff)
}

// Asks reports whether the guest's filter is one of the predicates.
func (f *Filter) Asks() bool { return f != nil && f.term.uses()&Func != 0 }
