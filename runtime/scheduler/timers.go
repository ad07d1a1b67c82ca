// SPDX-License-Identifier: Apache-2.0

package scheduler

// timers is a binary heap of entries: the earliest timer first and, of equal ones, the one that was set first. It is container/heap without
// the interface, which accounts for half of its cost.
type timers[K comparable, M any] []*entry[K, M]

func (t timers[K, M]) less(a, b *entry[K, M]) bool {
	return a.timer < b.timer || a.timer == b.timer && a.timerNo < b.timerNo
}

func (t *timers[K, M]) push(e *entry[K, M]) {
	*t = append(*t, e)
	t.up(e, len(*t)-1)
}

// remove removes an entry from any position.
func (t *timers[K, M]) remove(e *entry[K, M]) {
	last := len(*t) - 1
	moved, pos := (*t)[last], e.timerPos
	(*t)[last] = nil
	*t = (*t)[:last]
	if moved == e {
		return
	}
	t.down(moved, pos)
	t.up(moved, moved.timerPos)
}

// up moves an entry up from a free position to where it belongs.
func (t timers[K, M]) up(e *entry[K, M], pos int) {
	for pos > 0 {
		parent := (pos - 1) / 2
		if !t.less(e, t[parent]) {
			break
		}
		t[pos] = t[parent]
		t[pos].timerPos = pos
		pos = parent
	}
	t[pos], e.timerPos = e, pos
}

// down moves an entry down from a free position to where it belongs.
func (t timers[K, M]) down(e *entry[K, M], pos int) {
	for {
		child := 2*pos + 1
		if child >= len(t) {
			break
		}
		if right := child + 1; right < len(t) && t.less(t[right], t[child]) {
			child = right
		}
		if !t.less(t[child], e) {
			break
		}
		t[pos] = t[child]
		t[pos].timerPos = pos
		pos = child
	}
	t[pos], e.timerPos = e, pos
}
