// SPDX-License-Identifier: Apache-2.0

package meter

// point is a place where the counter is charged. It charges for the code that always runs after it:
// the code follows the point, and no branch bypasses it.
type point struct {
	cost int64
	// work is cost, and the work that callees may do without checking the counter.
	work int64
	// spare is the part of cost for code that may not run.
	spare int64
	// parent is the point that is always passed before this one, at least once. It is -1 if there
	// is none that could be charged in advance.
	parent int32
	kind   pointKind
}

type pointKind uint8

const (
	// pointPlain charges only.
	pointPlain pointKind = iota
	// pointChecked also checks whether the counter is exhausted.
	pointChecked
	// pointLoop is the head of a loop.
	pointLoop
)

// loop is one loop of a function.
type loop struct {
	point int32
	// back counts the branches to its head.
	back int
	// atHead means that the head checks the counter because the branches back cannot.
	atHead bool
	// local is the local that the branch table in its head reads, if the head has nothing else.
	// targets[from:to] are the blocks of that table.
	local    uint32
	from, to int
}

// maxWork limits the work between two checks of the counter in straight code. If the points of a
// function have more in total, each further point checks.
const maxWork = 1 << 17

// addPoint adds a point here and returns its number.
func (s *scanner) addPoint(kind pointKind) int32 {
	n := int32(len(s.points)) //nolint:gosec // fewer than bytes
	s.points = append(s.points, point{parent: s.cur, kind: kind})
	s.edit(edit{kind: editPoint, arg: uint32(n)}) //nolint:gosec // as above
	return n
}

// begin creates a new current point, in code that runs only after outer.
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

// boundWork adds a point between two instructions if the current one has enough work.
func (s *scanner) boundWork() {
	if s.cur >= 0 && s.points[s.cur].work > maxWork {
		s.cur = s.addPoint(pointChecked)
		s.points[s.cur].parent = -1 // it is charged separately
	}
}

// settle decides how loops are metered and how much each point charges. Points are in the order of
// the code, so a parent is final only after all its children.
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
			// The branches back charge all iterations but the first.
			parent.cost += p.cost
		case p.kind == pointPlain && parent.spare+p.cost <= s.m.slack:
			parent.cost += p.cost
			parent.spare += p.cost
			p.cost = 0
		}
	}
}

// maxBranches is the maximum number of branches back that check the counter themselves. A loop with
// more checks at its head.
const maxBranches = 4
