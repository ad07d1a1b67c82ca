package wasmctl

import (
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Changed returns views of what two structs of one type, by pointers, are in msgpack,
// without the keys at the top whose values are equal: patches are made of that. Of
// anything else it returns the whole.
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

// MergeDiff returns what MergePatch takes to make one struct of another of its type, by
// pointers. It reports false for anything else, and where maps differ: see Changed.
func MergeDiff(was, now any) (patch Value, ok bool, err error) {
	const often = 256 // bytes: a status
	b, ok, err := wire.AppendMerge(make([]byte, 0, often), was, now)
	return Value{b}, ok, err
}
