package wire

import (
	"math"
	"reflect"
	"unsafe"
)

// decodeFunc is how a value is decoded: see plan.
type decodeFunc = func(p *plan, d *decoder, at unsafe.Pointer) error

// scalarDecoder returns how a bool or a number is decoded; nothing fits into what
// is neither.
func scalarDecoder(t reflect.Type) decodeFunc {
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return signedDecoder(t)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return unsignedDecoder(t)
	case reflect.Float32:
		return decodeFloat32
	case reflect.Float64:
		return decodeFloat64
	default:
		return func(p *plan, d *decoder, _ unsafe.Pointer) error { return d.mismatch(p.typ) }
	}
}

func signedDecoder(t reflect.Type) decodeFunc {
	switch t.Size() {
	case 1:
		return decodeInt[int8]
	case 2:
		return decodeInt[int16]
	case 4:
		return decodeInt[int32]
	}
	return decodeInt[int64]
}

func unsignedDecoder(t reflect.Type) decodeFunc {
	switch t.Size() {
	case 1:
		return decodeInt[uint8]
	case 2:
		return decodeInt[uint16]
	case 4:
		return decodeInt[uint32]
	}
	return decodeInt[uint64]
}

func decodeInt[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](p *plan, d *decoder, at unsafe.Pointer) error {
	v := d.b[d.pos:]
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
