// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Changed returns views of the msgpack of two structs of one type, given as
// pointers, without the top-level keys whose values are equal. Patches are made
// from them. For other types it returns the complete values.
func Changed(was, now any) (from, to Value, err error) {
	a, b, ok, err := wire.AppendChanged(nil, nil, was, now)
	switch {
	case err != nil:
		return from, to, err
	case ok:
		return Value{a}, Value{b}, errors.Join(wire.Check(a), wire.Check(b))
	}
	if from, err = NewValue(was); err == nil {
		to, err = NewValue(now)
	}
	return from, to, err
}

// MergeDiff returns the argument of MergePatch that turns the struct was into
// the struct now, both given as pointers to one type. It returns false for
// other types, and if maps differ: see Changed.
func MergeDiff(was, now any) (patch Value, ok bool, err error) {
	const often = 256 // bytes; enough for a status
	b, ok, err := wire.AppendMerge(make([]byte, 0, often), was, now)
	return Value{b}, ok, err
}
