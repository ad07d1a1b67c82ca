// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"unsafe"
)

// decodeFunc decodes a value; see plan.
type decodeFunc = func(p *plan, d *decoder, at unsafe.Pointer) error

// scalarCodec returns the functions that decode and encode a bool or a number.
// For other types they return errors.
func scalarCodec(t reflect.Type) (decodeFunc, encodeFunc) {
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return decodeBool, encodeBool
	case k >= reflect.Int && k <= reflect.Int64:
		return intCodec[int8, int16, int32, int64](t)
	case k >= reflect.Uint && k <= reflect.Uint64:
		return intCodec[uint8, uint16, uint32, uint64](t)
	case k == reflect.Float32:
		return decodeFloat32, encodeFloat32
	case k == reflect.Float64:
		return decodeFloat64, encodeFloat64
	}
	return func(p *plan, d *decoder, _ unsafe.Pointer) error { return d.mismatch(p.typ) },
		func(p *plan, _ []byte, _ unsafe.Pointer, _ int) ([]byte, error) {
			return nil, errors.New("Go type " + p.typ.String() + " has no form in msgpack")
		}
}

// intCodec returns the functions for an integer of 1, 2, 4 or 8 bytes.
func intCodec[A, B, C, D integer](t reflect.Type) (decodeFunc, encodeFunc) {
	switch t.Size() {
	case 1:
		return decodeInt[A], encodeInt[A]
	case 2:
		return decodeInt[B], encodeInt[B]
	case 4:
		return decodeInt[C], encodeInt[C]
	}
	return decodeInt[D], encodeInt[D]
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func decodeInt[T integer](p *plan, d *decoder, at unsafe.Pointer) error {
	v := d.b[d.pos:]
	if v[0] <= math.MaxInt8 { // most numbers are small
		d.pos++
		*(*T)(at) = T(v[0])
		return nil
	}
	d.skip()
	i, ok := ReadInt(v)
	n := T(i)
	if !ok || int64(n) != i || n < 0 != (i < 0) {
		return mismatch(v, p.typ)
	}
	*(*T)(at) = n
	return nil
}

func decodeBool(p *plan, d *decoder, at unsafe.Pointer) error {
	v := d.b[d.pos:]
	d.skip()
	b, ok := ReadBool(v)
	if !ok {
		return mismatch(v, p.typ)
	}
	*(*bool)(at) = b
	return nil
}

func decodeFloat32(p *plan, d *decoder, at unsafe.Pointer) error {
	v := d.b[d.pos:]
	d.skip()
	f, ok := ReadFloat(v)
	if small := float32(f); ok && !math.IsInf(float64(small), 0) {
		*(*float32)(at) = small
		return nil
	}
	return mismatch(v, p.typ)
}

func decodeFloat64(p *plan, d *decoder, at unsafe.Pointer) error {
	v := d.b[d.pos:]
	d.skip()
	f, ok := ReadFloat(v)
	if !ok || math.IsInf(f, 0) {
		return mismatch(v, p.typ)
	}
	*(*float64)(at) = f
	return nil
}

func encodeInt[T integer](_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	v := *(*T)(at)
	n := int64(v)
	if v > 0 && n < 0 {
		return nil, ErrNumber
	}
	return AppendInt(dst, n), nil
}

func encodeBool(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	return AppendBool(dst, *(*bool)(at)), nil
}

// encodeFloat32 writes the shortest decimal number that reads back as this
// float32, as JSON does, instead of the exact float64.
func encodeFloat32(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(*(*float32)(at)), 'g', -1, 32), 64)
	if err != nil {
		return nil, ErrNumber
	}
	return appendFinite(dst, f)
}

func encodeFloat64(_ *plan, dst []byte, at unsafe.Pointer, _ int) ([]byte, error) {
	return appendFinite(dst, *(*float64)(at))
}
