// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"bytes"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Equal reports whether two values have the same encoding: whether the API server would see the
// same in both. It takes everything that an object accepts: maps, slices, structs with json tags,
// Objects and scalars. A value that cannot be encoded is equal to none.
//
// Use it instead of reflect.DeepEqual, which is wrong with TinyGo: it reports that slices and maps of
// any are equal if their elements differ.
func Equal(a, b any) bool {
	x, err := canonical(a)
	if err != nil {
		return false
	}
	y, err := canonical(b)
	return err == nil && bytes.Equal(x, y)
}

// canonical returns the encoding of a value with sorted keys: a struct and an Object have an order of their own.
func canonical(v any) ([]byte, error) {
	b, err := wire.Append(nil, v)
	if err == nil {
		v, err = wire.Decode(b)
	}
	if err != nil {
		return nil, err
	}
	return wire.Append(nil, v)
}
