// SPDX-License-Identifier: Apache-2.0

// Package slots splits objects into parts by a hash, the same one as that of the API server's sharded lists and watches (KEP-5866).
package slots

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Max is the largest number of slots that objects can be split into.
const Max = 256

// Of returns the slot, out of n, of a uid or a namespace. The hash is 64-bit FNV-1a, and slots are equal ranges of it, so that the API
// server can select a slot.
func Of(key string, n int) int {
	var h uint64 = 0xcbf29ce484222325
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 0x100000001b3
	}
	slot, _ := bits.Mul64(h, uint64(n))
	return int(slot)
}

// The fields that can determine the slot of an object.
const (
	UID       = "metadata.uid"
	Namespace = "metadata.namespace"
)

// Range is one slot of N, by a field of the objects. The zero Range includes everything.
type Range struct {
	Field   string // UID or Namespace
	Slot, N int
}

// Has reports whether an object is in the range.
func (r Range) Has(uid, namespace string) bool {
	switch r.Field {
	case UID:
		return Of(uid, r.N) == r.Slot
	case Namespace:
		return Of(namespace, r.N) == r.Slot
	}
	return true
}

// Selector returns the range as the API server's shardSelector, or "" for everything.
func (r Range) Selector() string {
	if r.N == 0 {
		return ""
	}
	return fmt.Sprintf("shardRange(object.%s, '%s', '%s')", r.Field, bound(r.Slot, r.N), bound(r.Slot+1, r.N))
}

// bound returns the start of a slot: the lowest hash h for which h*n/2^64 is the slot.
func bound(slot, n int) string {
	if slot == n {
		return "0x10000000000000000"
	}
	start, rest := bits.Div64(uint64(slot), 0, uint64(n))
	if rest > 0 {
		start++
	}
	return fmt.Sprintf("0x%016x", start)
}

// Set is a set of slots.
type Set [Max / 64]uint64

// Has reports whether a slot is in the set.
func (s *Set) Has(slot int) bool { return s[slot/64]>>(slot%64)&1 == 1 }

// Put adds or removes a slot.
func (s *Set) Put(slot int, in bool) {
	if in {
		s[slot/64] |= 1 << (slot % 64)
	} else {
		s[slot/64] &^= 1 << (slot % 64)
	}
}

// Add adds all slots of another set.
func (s *Set) Add(o Set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// Len returns the number of slots in the set.
func (s *Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// String returns the slots as ranges, such as "0-3,17".
func (s *Set) String() string {
	var parts []string
	for i := 0; i < Max; i++ {
		if !s.Has(i) {
			continue
		}
		first := i
		for i+1 < Max && s.Has(i+1) {
			i++
		}
		part := strconv.Itoa(first)
		if i > first {
			part += "-" + strconv.Itoa(i)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Set) UnmarshalText(text []byte) error {
	*s = Set{}
	if len(text) == 0 {
		return nil
	}
	for part := range strings.SplitSeq(string(text), ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err != nil || err2 != nil || first > last || last >= Max {
			return fmt.Errorf("slots: %q is not a range of 0 to %d", part, Max-1)
		}
		for i := first; i <= last; i++ {
			s.Put(int(i), true)
		}
	}
	return nil
}
