package predicate

import (
	"hash/maphash"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// DefaultTTL is how long changes of an object are hidden before one passes
// although nothing that counts has changed; kube-rs has the same.
const DefaultTTL = time.Hour

// Options are what a program, not a manifest, says of a Filter.
type Options struct {
	// Always lists annotations whose change always passes: what a user says to
	// the host by them must not be hidden by what a module listens to.
	Always []string
	// OnHidden, if not nil, is notified of each event that the Filter hides:
	// unchanged are the predicates that it compared. It is called by the goroutine
	// of the watch and must be quick.
	OnHidden func(ref reflector.ObjectRef, unchanged Words)
}

// Filter hides events. Make one with Parse; nil hides nothing. It is used by
// one goroutine, that of the watch.
type Filter struct {
	term   term
	uses   Words // without Func
	ttl    time.Duration
	opts   Options
	passed *memory // nil without a TTL
}

// Check says what becomes of an event. An object that was created, listed for
// the first time, deleted or replaced by one of another uid passes, unless it is
// the guest's to say. Of a change, the predicates decide; one that they would
// hide passes if the TTL has gone by since a change of that object last did.
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

// compare returns the verdict on an object that is there, and the predicates
// that saw no change.
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

// changed returns which of the predicates that the Filter uses let a change
// pass.
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
	// MapsAlike says at once, and without a copy, that nothing has changed.
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

// hashAnnotations returns a number that differs between different annotations,
// but for one pair in 2^64. They are sorted by key.
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

// writeString writes a string and, so that none runs into the next, its end:
// no byte of UTF-8 is 0xff.
func writeString(h *maphash.Hash, s string) {
	_, _ = h.WriteString(s)
	_ = h.WriteByte(0xff)
}

// Asks reports whether the guest's filter is one of the predicates.
func (f *Filter) Asks() bool { return f != nil && f.term.uses()&Func != 0 }
