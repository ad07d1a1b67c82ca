package predicate

import (
	"hash/maphash"
	"sync/atomic"
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
	// OnHidden, if not nil, is told of each event that the Filter hides: unchanged
	// are the predicates that it compared. It is called by the goroutine of the
	// watch and must be quick.
	OnHidden func(ref reflector.ObjectRef, unchanged Words)
}

// Filter hides events. Make one with Parse; nil hides nothing. It is used by
// one goroutine, that of the watch; Stats is for all.
type Filter struct {
	term   term
	uses   Words // without Func
	ttl    time.Duration
	opts   Options
	passed *memory // nil without a TTL

	counts [4]atomic.Uint64          // by Verdict, and expired
	hidden [len(words)]atomic.Uint64 // by predicate
}

// expired is the index in counts of what passed because of the TTL.
const expired = 3

// Check says what becomes of an event. An object that was created, listed for
// the first time, deleted or replaced by one of another uid passes, unless it is
// the guest's to say. Of a change, the predicates decide; one that they would
// hide passes if the TTL has gone by since a change of that object last did.
func (f *Filter) Check(now time.Time, ev reflector.Event) Verdict {
	if f == nil {
		return Pass
	}
	verdict := f.check(now, ev)
	f.counts[verdict].Add(1)
	return verdict
}

func (f *Filter) check(now time.Time, ev reflector.Event) Verdict {
	if ev.Type == reflector.Deleted {
		f.passed.forget(ev.Old)
		return f.term.eval(f.uses)
	}
	verdict, unchanged := f.compare(ev)
	if verdict == Hide && f.passed.expired(now, ev.New) {
		f.counts[expired].Add(1)
		verdict = f.term.eval(f.uses)
	}
	if verdict == Hide {
		f.tellHidden(ev.Ref(), unchanged)
	} else {
		f.passed.record(now, ev.New)
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

func (f *Filter) tellHidden(ref reflector.ObjectRef, unchanged Words) {
	for i := range f.hidden {
		if unchanged&(1<<i) != 0 {
			f.hidden[i].Add(1)
		}
	}
	if f.opts.OnHidden != nil {
		f.opts.OnHidden(ref, unchanged)
	}
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

// TTL returns how long changes of an object are hidden at most; 0 is for ever.
func (f *Filter) TTL() time.Duration {
	if f == nil {
		return 0
	}
	return f.ttl
}

// String returns the predicates as they are written, "any(generation, labels)".
func (f *Filter) String() string {
	if f == nil {
		return "none"
	}
	return f.term.String()
}

// Stats counts what a Filter said.
type Stats struct {
	Passed, Hidden, Asked uint64
	// Expired counts those that passed, or were the guest's to say, because of the
	// TTL.
	Expired uint64
	// Unchanged counts, by predicate, the hidden events in which it saw no change.
	Unchanged map[Words]uint64
}

// Stats returns the present counts. It may be called at any time.
func (f *Filter) Stats() Stats {
	if f == nil {
		return Stats{}
	}
	st := Stats{
		Passed: f.counts[Pass].Load(), Hidden: f.counts[Hide].Load(), Asked: f.counts[Ask].Load(), Expired: f.counts[expired].Load(),
		Unchanged: map[Words]uint64{},
	}
	for i := range f.hidden {
		if w := Words(1 << i); f.uses&w != 0 {
			st.Unchanged[w] = f.hidden[i].Load()
		}
	}
	return st
}
