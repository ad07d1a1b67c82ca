// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// value writes one value as its JSON would be converted.
func (t *Transcoder) value(v *value, f *found, depth int) bool {
	switch v.form {
	case asMap:
		return t.message(v.fields, f.b, depth)
	case asText:
		return t.text(f.b)
	case asBase64:
		return t.base64(f.b)
	case asBool:
		t.out = append(t.out, 0xc2|byte(f.num&1))
		return f.num <= 1
	case asInt:
		t.out = abi.AppendInt(t.out, int64(f.num)) // a negative number uses all 64 bits
	case asUint:
		t.out = abi.AppendInt(t.out, int64(f.num)) //nolint:gosec // checked below
		return f.num <= math.MaxInt64
	case asFloat64:
		return t.float(math.Float64frombits(f.num))
	case asTime:
		return t.time(f.b, time.RFC3339)
	case asMicroTime:
		return t.time(f.b, metav1.RFC3339Micro)
	case asList:
		return t.wrapped(v.elem, f.b, depth)
	default:
		return t.special(v, f.b)
	}
	return true
}

// special writes a value of a type with its own message and its own JSON.
func (t *Transcoder) special(v *value, b []byte) bool {
	var fields [4]found
	if !read(fields[:], b, protowire.VarintType, protowire.BytesType, protowire.Fixed64Type) {
		return false
	}
	one := &fields[1]
	switch v.form {
	case asDuration:
		return t.text([]byte(time.Duration(one.num).String())) // a negative number uses all 64 bits
	case asQuantity:
		if len(one.b) == 0 {
			return t.text([]byte("0"))
		}
		return t.text(one.b)
	case asIntOrString:
		if one.num == 1 {
			return t.text(fields[3].b)
		}
		t.out = abi.AppendInt(t.out, int64(int32(fields[2].num))) //nolint:gosec // an int32
		return one.num == 0
	case asJSON, asOpaque:
		if one.count == 0 || v.form == asOpaque && string(one.b) == "null" {
			t.out = append(t.out, 0xc0)
			return true
		}
		if v.form == asOpaque {
			t.out = abi.AppendOpaque(t.out, one.b)
			return json.Valid(one.b)
		}
		var ok bool
		t.out, ok = t.json.Append(t.out, one.b)
		return ok
	default:
		return false
	}
}

// read reads a small message: the last value of each field, by number. It fails if there are other fields, or other wire types.
func read(fields []found, b []byte, as ...protowire.Type) bool {
	for len(b) > 0 {
		num, wire, size := protowire.ConsumeTag(b)
		if size < 0 || int(num) >= len(fields) || !slices.Contains(as, wire) {
			return false
		}
		n := fields[num].read(wire, b[size:])
		if n < 0 {
			return false
		}
		fields[num].count++
		b = b[size+n:]
	}
	return true
}

// wrapped writes a list that has its own message.
func (t *Transcoder) wrapped(v *value, b []byte, depth int) bool {
	n := 0
	for rest := b; len(rest) > 0; n++ {
		num, _, size := protowire.ConsumeField(rest)
		if size < 0 || num != 1 {
			return false
		}
		rest = rest[size:]
	}
	return t.list(v, 1, n, b, depth)
}

// time writes a time, which is encoded as seconds and nanoseconds since 1970; an empty one is null.
func (t *Transcoder) time(b []byte, layout string) bool {
	if len(b) == 0 {
		t.out = append(t.out, 0xc0)
		return true
	}
	var fields [3]found
	if !read(fields[:], b, protowire.VarintType) {
		return false
	}
	at := time.Unix(int64(fields[1].num), int64(fields[2].num)).UTC() // a negative number uses all 64 bits
	if y := at.Year(); y < 0 || y > 9999 {
		return false
	}
	var text [40]byte
	return t.text(at.AppendFormat(text[:0], layout))
}

// float writes a number; as in JSON, 1.0 and 1 are the same.
func (t *Transcoder) float(f float64) bool {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return false
	case f == math.Trunc(f) && math.Abs(f) < 1<<62:
		t.out = abi.AppendInt(t.out, int64(f))
	default:
		t.out = binary.BigEndian.AppendUint64(append(t.out, 0xcb), math.Float64bits(f))
	}
	return true
}

func (t *Transcoder) base64(b []byte) bool {
	t.out = abi.AppendTextHead(t.out, base64.StdEncoding.EncodedLen(len(b)))
	t.out = base64.StdEncoding.AppendEncode(t.out, b)
	return true
}

func (t *Transcoder) text(s []byte) bool {
	t.out = append(abi.AppendTextHead(t.out, len(s)), s...)
	return utf8.Valid(s)
}
