// SPDX-License-Identifier: Apache-2.0

package fieldpath

import "iter"

// Fields yields the paths of fields, ordered by their keys. A path is valid only until the next
// one: a walk uses one stack of steps, so that it takes memory by the depth of the object and not
// by its fields. Clone returns a permanent copy.
type Fields iter.Seq[Path]

// Without omits the fields for which omit returns true.
func (f Fields) Without(omit func(Path) bool) Fields {
	return func(yield func(Path) bool) {
		f(func(p Path) bool { return omit(p) || yield(p) })
	}
}

// Collect returns copies of the first fields, up to limit.
func (f Fields) Collect(limit int) []Path {
	var paths []Path
	for p := range f {
		if len(paths) == limit {
			break
		}
		paths = append(paths, p.Clone())
	}
	return paths
}

// walk yields the fields of an object during a traversal.
type walk struct {
	yield func(Path) bool
	path  Path
	steps uint64 // the number of pushed steps
	over  bool   // the consumer has stopped
}

func (w *walk) push(s step) {
	w.steps++
	s.serial = w.steps
	w.path = append(w.path, s)
}

func (w *walk) pop() { w.path = w.path[:len(w.path)-1] }

// leaf yields the current field of the walk.
func (w *walk) leaf() { w.over = w.over || !w.yield(w.path) }
