package meter

import "strconv"

const nameSection = "name"

// Parts of the name section that wazero reads or that go by function index.
const (
	nameOfModule     = 0
	namesOfFunctions = 1
	namesOfLocals    = 2
	namesOfLabels    = 3
)

// names rewrites the name section. Names keep to their functions. A function
// without a name gets the one that wazero would show: its index in the original
// module, so that stack traces stay as they were.
func (w *rewriter) names(s *section) error {
	w.payload = w.payload[:0]
	r := s.body
	done := false
	for r.left() > 0 && r.err == nil {
		from := r.pos
		id := r.byte()
		if !done && id >= namesOfFunctions {
			done = true
			empty := reader{b: []byte{0}}
			if id != namesOfFunctions {
				w.functionNames(&empty)
			}
		}
		part := r.block()
		switch id {
		case nameOfModule:
			w.copyFrom(&r, from)
			part.name()
			_ = part.end() // noted in part
		case namesOfFunctions:
			w.functionNames(&part)
		case namesOfLocals, namesOfLabels:
			w.indirectNames(id, &part)
		default:
			w.copyFrom(&r, from)
		}
		if part.err != nil {
			return part.err
		}
	}
	if !done {
		w.functionNames(&reader{b: []byte{0}})
	}
	if r.err == nil {
		w.customSection(nameSection)
	}
	return r.err
}

// functionNames writes the names of functions, and what stands in for those
// that have none.
func (w *rewriter) functionNames(r *reader) {
	var out []byte
	count, next := uint32(0), uint32(w.imported) //nolint:gosec // counts fit
	upTo := func(idx uint32) {
		for ; next < idx && int64(next) < int64(len(w.funcs)); next++ {
			out = appendU32(out, next+1)
			out = appendName(out, "$"+strconv.Itoa(int(next)))
			count++
		}
	}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		idx := r.u32()
		upTo(idx)
		next = max(next, idx+1)
		out = appendU32(out, w.shift(idx))
		out = appendName(out, r.name())
		count++
	}
	upTo(uint32(len(w.funcs))) //nolint:gosec // counts fit
	if r.end() != nil {
		return
	}
	w.namePart(namesOfFunctions, count, out)
}

// indirectNames writes names that go by function first: those of locals and
// labels.
func (w *rewriter) indirectNames(id byte, r *reader) {
	var out []byte
	n := r.count()
	count := uint32(n) //nolint:gosec // counts fit
	for ; n > 0 && r.err == nil; n-- {
		out = appendU32(out, w.shift(r.u32()))
		from := r.pos
		for m := r.count(); m > 0 && r.err == nil; m-- {
			r.u32()
			r.name()
		}
		out = append(out, r.b[from:r.pos]...)
	}
	if r.end() == nil {
		w.namePart(id, count, out)
	}
}

// namePart writes one part of the name section.
func (w *rewriter) namePart(id byte, count uint32, names []byte) {
	head := appendU32(nil, count)
	w.payload = append(w.payload, id)
	w.payload = appendU32(w.payload, uint32(len(head)+len(names))) //nolint:gosec // a module is smaller than 4 GiB
	w.payload = append(append(w.payload, head...), names...)
}
