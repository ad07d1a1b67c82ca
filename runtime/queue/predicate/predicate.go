// SPDX-License-Identifier: Apache-2.0

// Package predicate decides which events to ignore: a Filter compares an object before and after a change, and hides the change if none of
// the fields selected by its predicates differ. Hidden events still update the store (rule 23): a Filter is between the store and the
// queue.
//
// A Filter compares the two states that the event carries and remembers none, as controller-runtime's predicates do. The predicates of
// kube-rs remember a hash of each object's last value, because a relist returns every object again; here, a relist causes events only for
// changed objects (rule 11). For the TTL, a Filter remembers when the last change of an object passed: some 40 bytes for each object that
// changed within the TTL.
package predicate

import "strings"

// Words is a set of predicates.
type Words uint8

// The predicates. Each lets a change pass if its field has changed.
const (
	// Generation is metadata.generation: it changes with the spec, for kinds that maintain it, and when the deletion of an object with
	// finalizers is requested. An object without a generation (ConfigMap) always passes.
	Generation Words = 1 << iota
	// ResourceVersion is metadata.resourceVersion. An object without one always passes.
	ResourceVersion
	// Labels, Annotations and Finalizers are the metadata fields of the same name.
	Labels
	Annotations
	Finalizers
	// Deletion is whether metadata.deletionTimestamp is set.
	Deletion
	// Func is the guest's filter. A Filter does not call it: see Ask.
	Func
)

// words are the names of the predicates, by bit.
var words = [...]string{"generation", "resourceVersion", "labels", "annotations", "finalizers", "deletion", "func"}

// String returns the names of the predicates, separated by commas.
func (w Words) String() string {
	var names []string
	for i, name := range words {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Verdict is the decision of a Filter about an event.
type Verdict uint8

// The verdicts.
const (
	// Pass means that the event is processed.
	Pass Verdict = iota
	// Hide means that the event is ignored.
	Hide
	// Ask means that the guest's filter decides.
	Ask
)

// term is a predicate, or a list of terms of which all or any must let a change pass.
type term struct {
	word Words  // of a single predicate; otherwise 0
	all  bool   // all(...) rather than any(...)
	of   []term // the terms in the brackets
}

// String returns the term in the syntax of Parse.
func (t term) String() string {
	if t.word != 0 {
		return t.word.String()
	}
	parts := make([]string, len(t.of))
	for i, sub := range t.of {
		parts[i] = sub.String()
	}
	if t.all {
		return "all(" + strings.Join(parts, ", ") + ")"
	}
	return "any(" + strings.Join(parts, ", ") + ")"
}

// uses returns all predicates of the term.
func (t term) uses() Words {
	w := t.word
	for _, sub := range t.of {
		w |= sub.uses()
	}
	return w
}

// eval returns the verdict on a change; passes are the predicates that let it pass. Func is never in that set, and gives Ask, which
// means "undecided": any(...) passes without asking if one term passes, and all(...) hides without asking if one term hides.
func (t term) eval(passes Words) Verdict {
	switch {
	case t.word == Func:
		return Ask
	case t.word != 0:
		if passes&t.word != 0 {
			return Pass
		}
		return Hide
	}
	decides, verdict := Pass, Hide // any: one that passes decides
	if t.all {
		decides, verdict = Hide, Pass
	}
	for _, sub := range t.of {
		switch v := sub.eval(passes); v {
		case decides:
			return v
		case Ask:
			verdict = Ask
		case Pass, Hide:
		}
	}
	return verdict
}
