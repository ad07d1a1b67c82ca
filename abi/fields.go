// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// message is like eachKey, for a complete message; an empty one has no keys. It does not pass the reader to f, which would move the reader
// to the heap.
func (r *reader) message(f func(key string) (known bool, err error)) (unknown []string, err error) {
	if len(r.b) == 0 {
		return nil, nil
	}
	if len(r.b) > MaxBytes {
		return nil, ErrTooLarge
	}
	if unknown, err = r.eachKey(f); err == nil {
		err = r.end()
	}
	return unknown, err
}

// eachKey reads a map and calls f with each key. f reads the value, or returns false if it does not know the key, which is then skipped and
// returned. A duplicate key is an error.
func (r *reader) eachKey(f func(key string) (known bool, err error)) (unknown []string, err error) {
	n, err := r.mapLen()
	if err != nil {
		return nil, err
	}
	var seen keySet
	for range n {
		k, err := r.str()
		if err != nil {
			return nil, err
		}
		key := string(k)
		if !seen.add(key) {
			return nil, fmt.Errorf("%w: key %q appears twice in one map", ErrType, key)
		}
		known, err := f(key)
		if err == nil && !known {
			unknown = append(unknown, key)
			err = r.skip(1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return unknown, nil
}

// keySet is a set that does not allocate while it is small, and stays fast if a hostile message has a million keys.
type keySet struct {
	few  [8]string
	n    int
	many map[string]struct{}
}

// add reports whether the key was not in the set.
func (s *keySet) add(key string) bool {
	if slices.Contains(s.few[:s.n], key) {
		return false
	}
	if s.n < len(s.few) {
		s.few[s.n] = key
		s.n++
		return true
	}
	if s.many == nil {
		s.many = make(map[string]struct{})
	}
	_, twice := s.many[key]
	s.many[key] = struct{}{}
	return !twice
}

// null consumes a nil and reports whether there was one: in a message, nil is equivalent to an absent key (section 3 of ABI.md).
func (r *reader) null() bool {
	if r.pos < len(r.b) && r.b[r.pos] == 0xc0 {
		r.pos++
		return true
	}
	return false
}

// Each of the following methods reads the value of a known key. A nil leaves the zero value.

func (r *reader) string(dst *string) (bool, error) {
	if r.null() {
		return true, nil
	}
	s, err := r.str()
	*dst = string(s)
	return true, err
}

func (r *reader) flag(dst *bool) (known bool, err error) {
	if !r.null() {
		*dst, err = r.bool()
	}
	return true, err
}

// copied reads a map as a copy of its bytes, and validates all of it.
func (r *reader) copied(dst *[]byte, depth int) (bool, error) {
	if r.null() {
		return true, nil
	}
	if err := r.expect(kindMap, "a map"); err != nil {
		return true, err
	}
	start := r.pos
	if err := r.skip(depth); err != nil {
		return true, err
	}
	*dst = bytes.Clone(r.b[start:r.pos])
	return true, nil
}

// appendMap reads a map in a list, as copied does. A nil is an error.
func (r *reader) appendMap(list *[][]byte) error {
	var m []byte
	if _, err := r.copied(&m, 2); err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("%w: want a map", ErrType)
	}
	*list = append(*list, m)
	return nil
}

// list reads an array of at most MaxItems elements and calls f for each.
func (r *reader) list(f func() error) (bool, error) {
	if r.null() {
		return true, nil
	}
	n, err := r.arrayLen()
	if err != nil {
		return true, err
	}
	if n > MaxItems {
		return true, fmt.Errorf("%w: %d elements, at most %d are allowed", ErrType, n, MaxItems)
	}
	for i := range n {
		if err := f(); err != nil {
			return true, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return true, nil
}

// millis reads a duration in milliseconds, which must not be negative; a duration that is too long for a time.Duration is clamped.
func (r *reader) millis(dst *time.Duration) (bool, error) {
	if r.null() {
		return true, nil
	}
	ms, err := r.int()
	if err != nil {
		return true, err
	}
	if ms < 0 {
		return true, fmt.Errorf("%w: %d ms is negative", ErrType, ms)
	}
	const limit = int64(1<<63-1) / int64(time.Millisecond)
	*dst = time.Duration(min(ms, limit)) * time.Millisecond
	return true, nil
}
