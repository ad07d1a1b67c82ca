package meter

// point is a place where the counter is charged. The charge of a point is for
// the code that runs whenever the point is passed: it lies behind the point
// and no branch leads around it.
type point struct {
	cost int64
	// work is cost, and what callees may do without looking at the counter.
	work int64
	// spare is the part of cost that is for code that may not run.
	spare int64
	// parent is the point that is always passed before this one, once or more
	// often; -1 where there is none to charge in advance.
	parent int32
	kind   pointKind
}

type pointKind uint8

const (
	// pointPlain charges only.
	pointPlain pointKind = iota
	// pointChecked also looks whether the counter has run out.
	pointChecked
	// pointLoop is the head of a loop.
	pointLoop
)

// loop is one loop of a function.
type loop struct {
	point int32
	// back counts the branches to its head.
	back int
	// atHead is set if the head checks the counter because the branches back
	// cannot.
	atHead bool
	// local is what the branch table in its head looks at, where it has nothing
	// else; targets[from:to] are where that leads.
	local    uint32
	from, to int
}

// maxWork bounds the work between two checks of the counter in straight code. A
// function whose points have more together checks at each further one.
const maxWork = 1 << 17

// addPoint adds a point here and returns its number.
func (s *scanner) addPoint(kind pointKind) int32 {
	n := int32(len(s.points)) //nolint:gosec // fewer than bytes
	s.points = append(s.points, point{parent: s.cur, kind: kind})
	s.edit(edit{kind: editPoint, arg: uint32(n)}) //nolint:gosec // as above
	return n
}

// begin makes a new current point, in code that runs only if outer was passed.
func (s *scanner) begin(outer int32) {
	if s.cur = outer; outer < 0 {
		return
	}
	kind := pointPlain
	if s.work > maxWork {
		kind = pointChecked
	}
	s.cur = s.addPoint(kind)
}

func (s *scanner) charge(cost, work int64) {
	if s.cur < 0 {
		return
	}
	p := &s.points[s.cur]
	p.cost += cost
	p.work += cost + work
	s.work += cost + work
}

// boundWork adds a point between two instructions where the current one has enough.
func (s *scanner) boundWork() {
	if s.cur >= 0 && s.points[s.cur].work > maxWork {
		s.cur = s.addPoint(pointChecked)
		s.points[s.cur].parent = -1 // its charge is its own
	}
}

// settle decides how loops are metered and how much each point charges.
// Points come in the order of the code, so a parent is final only after all
// that name it.
func (s *scanner) settle() {
	for i := range s.loops {
		l := &s.loops[i]
		if l.back > maxBranches {
			l.atHead = true
		}
		if l.atHead && l.point >= 0 {
			s.points[l.point].kind = pointChecked
		}
	}
	for i := len(s.points) - 1; i >= 0; i-- {
		p := &s.points[i]
		if p.parent < 0 {
			continue
		}
		parent := &s.points[p.parent]
		switch {
		case p.kind == pointLoop:
			// The branches back charge the rounds, but not the first.
			parent.cost += p.cost
		case p.kind == pointPlain && parent.spare+p.cost <= s.m.slack:
			parent.cost += p.cost
			parent.spare += p.cost
			p.cost = 0
		}
	}
}

// maxBranches is how many branches back a loop may have that look at the
// counter; a loop with more does it at its head.
const maxBranches = 4
