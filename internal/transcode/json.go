// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// jsonWriter writes the JSON of msgpack values.
type jsonWriter struct {
	out  []byte
	keys [][]byte // of the enclosing maps, the innermost last
}

// AppendJSON appends the JSON of the msgpack value b to dst. If it returns false, b is not one value that abi.DecodeValue accepts, and dst is
// unchanged.
func AppendJSON(dst, b []byte) (out []byte, ok bool) {
	w := jsonWriter{out: dst}
	c := packed.At(b)
	if !w.value(&c, 0) || len(c.Rest()) > 0 {
		return dst, false
	}
	return w.out, true
}

func (w *jsonWriter) value(c *packed.Cursor, depth int) bool {
	switch packed.FormOf(c.Rest()) {
	case packed.Text:
		return w.text(c.Text())
	case packed.Map:
		return depth < abi.MaxDepth && w.object(c, depth)
	case packed.Array:
		return depth < abi.MaxDepth && w.array(c, depth)
	case packed.Opaque:
		return w.opaque(c.Value())
	case packed.Scalar:
	}
	return w.scalar(c.Value())
}

func (w *jsonWriter) array(c *packed.Cursor, depth int) bool {
	w.out = append(w.out, '[')
	for i := range c.ArrayLen() {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if !w.value(c, depth+1) {
			return false
		}
	}
	w.out = append(w.out, ']')
	return true
}

func (w *jsonWriter) object(c *packed.Cursor, depth int) bool {
	first, ascending := len(w.keys), true
	w.out = append(w.out, '{')
	for i := range c.MapLen() {
		if packed.FormOf(c.Rest()) != packed.Text {
			return false
		}
		key := c.Text()
		if i > 0 {
			ascending = ascending && bytes.Compare(w.keys[len(w.keys)-1], key) < 0
			w.out = append(w.out, ',')
		}
		w.keys = append(w.keys, key)
		if !w.text(key) {
			return false
		}
		w.out = append(w.out, ':')
		if !w.value(c, depth+1) {
			return false
		}
	}
	w.out = append(w.out, '}')
	keys := w.keys[first:]
	w.keys = w.keys[:first]
	return ascending || !haveTwice(keys)
}

// haveTwice sorts the keys, and reports whether one appears twice.
func haveTwice(keys [][]byte) bool {
	slices.SortFunc(keys, bytes.Compare)
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1], keys[i]) {
			return true
		}
	}
	return false
}

// text appends a string. It copies runs without escapes at once.
func (w *jsonWriter) text(s []byte) bool {
	const digits = "0123456789abcdef"
	w.out = append(w.out, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.out = append(w.out, s[from:i]...)
		from = i + 1
		if c == '"' || c == '\\' {
			w.out = append(w.out, '\\', c)
			continue
		}
		w.out = append(w.out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
	w.out = append(append(w.out, s[from:]...), '"')
	return utf8.Valid(s)
}

// opaque appends the text of opaque JSON, unless it nests too deeply or a key appears twice in it.
func (w *jsonWriter) opaque(b []byte) bool {
	v, err := abi.DecodeValue(b)
	if err != nil {
		return false
	}
	js, err := json.Marshal(v)
	w.out = append(w.out, js...)
	return err == nil
}

// scalar appends nil, a bool or a number.
func (w *jsonWriter) scalar(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	c, digits := b[0], b[1:]
	var n uint64
	for _, d := range digits {
		n = n<<8 | uint64(d)
	}
	switch {
	case c <= 0x7f:
		w.out = strconv.AppendUint(w.out, uint64(c), 10)
	case c >= 0xe0:
		w.out = strconv.AppendInt(w.out, int64(int8(c)), 10) //nolint:gosec // the sign bit is intended
	case c == 0xc0:
		w.out = append(w.out, "null"...)
	case c == 0xc2, c == 0xc3:
		w.out = strconv.AppendBool(w.out, c == 0xc3)
	case c == 0xca && len(digits) == 4:
		return w.float(float64(math.Float32frombits(binary.BigEndian.Uint32(digits))))
	case c == 0xcb:
		return w.float(math.Float64frombits(n))
	case c >= 0xcc && c <= 0xcf:
		w.out = strconv.AppendUint(w.out, n, 10)
		return n <= math.MaxInt64
	case c >= 0xd0 && c <= 0xd3:
		shift := 64 - 8*len(digits)
		w.out = strconv.AppendInt(w.out, int64(n)<<shift>>shift, 10) //nolint:gosec // the sign bit is intended
	default:
		return false
	}
	return true
}

func (w *jsonWriter) float(f float64) bool {
	js, err := json.Marshal(f)
	w.out = append(w.out, js...)
	return err == nil
}
