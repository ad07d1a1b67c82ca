// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"strconv"
)

// AppendAsJSON appends the JSON of the first value of v.
func AppendAsJSON(dst, v []byte) ([]byte, error) {
	end := Skip(v, 0)
	if end < 0 {
		return nil, ErrTruncated
	}
	return appendAsJSON(dst, &decoder{b: v[:end]})
}

// appendAsJSON appends the JSON of the next value of d, and advances d past it.
func appendAsJSON(dst []byte, d *decoder) ([]byte, error) {
	v := d.b[d.pos:]
	switch TypeOf(v) {
	case Array, Map:
		if v[0] == 0x80 { // managedFields consist of empty maps
			d.pos++
			return append(dst, "{}"...), nil
		}
		return containerAsJSON(dst, d)
	case String:
		s, _ := d.text()
		return appendQuoted(dst, s), nil
	case Opaque:
		dst = append(dst, opaqueText(v)...)
	case Nil:
		dst = append(dst, "null"...)
	case Bool:
		b, _ := ReadBool(v)
		dst = strconv.AppendBool(dst, b)
	case Int:
		i, ok := readInt(v)
		if !ok {
			return nil, ErrNumber
		}
		dst = strconv.AppendInt(dst, i, 10)
	case Float:
		f, _ := ReadFloat(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, ErrNumber
		}
		dst = appendFloatJSON(dst, f)
	default:
		return nil, ErrType
	}
	d.skip()
	return dst, nil
}

// appendFloatJSON writes very large and very small numbers with an exponent.
func appendFloatJSON(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

func containerAsJSON(dst []byte, d *decoder) ([]byte, error) {
	t := TypeOf(d.b[d.pos:])
	n, err := d.open(t)
	if err != nil {
		return nil, err
	}
	open, end := byte('['), byte(']')
	if t == Map {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if t == Map {
			key, ok := d.shortText()
			if ok && d.b[d.pos] == 0x80 && isPlain(unsafeString(key)) { // most entries of managedFields
				d.pos++
				dst = append(append(append(dst, '"'), key...), `":{}`...)
				continue
			}
			if !ok {
				if key, ok = d.text(); !ok {
					return nil, ErrType
				}
			}
			dst = append(appendQuoted(dst, key), ':')
		}
		if dst, err = appendAsJSON(dst, d); err != nil {
			return nil, err
		}
	}
	d.depth--
	return append(dst, end), nil
}

// appendQuoted writes a JSON string. It copies runs without escapes at once;
// most strings are one run.
func appendQuoted(dst, s []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	if isPlain(unsafeString(s)) {
		return append(append(dst, s...), '"')
	}
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
