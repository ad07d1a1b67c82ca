package shard

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"
	"strings"
)

// MaxSlots is the largest number of slots that objects can be split into.
const MaxSlots = 256

// SlotOf returns the slot of n that a uid or a namespace is in. The hash is that of
// the API server's sharded lists and watches (KEP-5866), and slots are equal ranges
// of it, so that a slot can be asked of the API server.
func SlotOf(key string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	slot, _ := bits.Mul64(h.Sum64(), uint64(n))
	return int(slot)
}

// Selector returns the shardSelector of a slot of n by a field of the objects, in
// the form that the API server parses.
func Selector(field string, slot, n int) string {
	return fmt.Sprintf("shardRange(object.%s, '%s', '%s')", field, bound(slot, n), bound(slot+1, n))
}

// bound is where a slot begins: the first hash h of which h*n/2^64 is the slot.
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
type Set [MaxSlots / 64]uint64

// Has reports whether a slot is in the set.
func (s *Set) Has(slot int) bool { return s[slot/64]>>(slot%64)&1 == 1 }

// Put adds a slot, or takes it out.
func (s *Set) Put(slot int, in bool) {
	if in {
		s[slot/64] |= 1 << (slot % 64)
	} else {
		s[slot/64] &^= 1 << (slot % 64)
	}
}

// Len returns how many slots are in the set.
func (s *Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// String returns the slots as ranges: "0-3,17".
func (s *Set) String() string {
	var parts []string
	for i := 0; i < MaxSlots; i++ {
		if !s.Has(i) {
			continue
		}
		first := i
		for i+1 < MaxSlots && s.Has(i+1) {
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
		if err != nil || err2 != nil || first > last || last >= MaxSlots {
			return fmt.Errorf("slots: %q is not a range of 0 to %d", part, MaxSlots-1)
		}
		for i := first; i <= last; i++ {
			s.Put(int(i), true)
		}
	}
	return nil
}
