package fieldpath

import "iter"

// Fields yields the paths of fields, in the order of their keys. A path is valid
// until the next one: walks share one stack of steps, so that the fields of an
// object take memory by its depth, and not each its own. Clone keeps a path.
type Fields iter.Seq[Path]

// Without leaves out some fields.
func (f Fields) Without(drop func(Path) bool) Fields {
	return func(yield func(Path) bool) {
		f(func(p Path) bool { return drop(p) || yield(p) })
	}
}

// Collect returns copies of the first fields, at most so many.
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

// walk yields the fields of an object while it goes through it.
type walk struct {
	yield func(Path) bool
	path  Path
	steps uint64 // pushed until now
	over  bool   // who reads has had enough
}

func (w *walk) push(s step) {
	w.steps++
	s.serial = w.steps
	w.path = append(w.path, s)
}

func (w *walk) pop() { w.path = w.path[:len(w.path)-1] }

// leaf yields the field that the walk is at.
func (w *walk) leaf() { w.over = w.over || !w.yield(w.path) }
