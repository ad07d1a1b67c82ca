// SPDX-License-Identifier: Apache-2.0

package scheduler

// list is a doubly linked list of entries, first in, first out.
type list[K comparable, M any] struct {
	head, tail *entry[K, M]
	len        int
}

// push appends an entry.
func (l *list[K, M]) push(e *entry[K, M]) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.len++
}

// remove removes an entry from any position of the list.
func (l *list[K, M]) remove(e *entry[K, M]) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// queue holds the ready entries of one class.
type queue[K comparable, M any] struct {
	list[K, M]
	passed int // how many entries of higher classes were handed out since this class was last served or empty
}

// freeList keeps up to maxFree unused entries for reuse.
type freeList[K comparable, M any] struct {
	head *entry[K, M]
	len  int
}

// get returns an empty entry.
func (f *freeList[K, M]) get() *entry[K, M] {
	e := f.head
	if e == nil {
		return &entry[K, M]{}
	}
	f.head, e.next = e.next, nil
	f.len--
	return e
}

// put adds an unused entry that is in no list.
func (f *freeList[K, M]) put(e *entry[K, M]) {
	if f.len == maxFree {
		return
	}
	*e = entry[K, M]{next: f.head}
	f.head = e
	f.len++
}
