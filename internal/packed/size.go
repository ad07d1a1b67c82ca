// SPDX-License-Identifier: Apache-2.0

package packed

// Approximate sizes of Go values: an interface, a string with its bytes rounded up, an empty map, and a map slot for a key and a value at
// an average load.
const (
	sizeValue  = 16
	sizeText   = 24
	sizeMap    = 48
	sizeGroup  = 280 // of up to eight keys
	sizeOfSlot = 64
)

// Measure returns the number of values and keys in a value, and its approximate size in bytes when decoded into Go's maps and slices. It
// stops at invalid bytes.
func Measure(b []byte) (values int, decoded int64) {
	for left := 1; left > 0; left-- {
		h := headOf(b)
		if h.begin == 0 {
			return values, decoded
		}
		values++
		end := int(h.begin)
		switch h.form {
		case Text:
			end += h.n
			decoded += sizeText + int64(h.n)
		case Opaque:
			js := b[end:][:h.n]
			values += CountJSON(js)
			decoded += MeasureJSON(js)
			end += h.n
		case Array:
			left += h.n
			decoded += sizeText + sizeValue*int64(h.n)
		case Map:
			left += 2 * h.n
			decoded += sizeMap
			if h.n > 0 {
				decoded += max(sizeGroup, sizeOfSlot*int64(h.n))
			}
		case Scalar:
			decoded += sizeValue / 2
		}
		b = b[end:]
	}
	return values, decoded
}

// CountJSON returns the approximate number of values and keys in a JSON text.
func CountJSON(js []byte) (n int) {
	for _, c := range js {
		if c == ',' || c == ':' || c == '{' || c == '[' {
			n++
		}
	}
	return n
}

// MeasureJSON is like Measure for JSON: it returns the approximate size when decoded. It skips strings, so that JSON within JSON is only a
// string.
func MeasureJSON(js []byte) (decoded int64) {
	decoded = int64(len(js))
	for i := 0; i < len(js); i++ {
		switch js[i] {
		case '"':
			i += textEnd(js[i+1:])
			decoded += sizeText
		case '{':
			decoded += sizeMap + sizeGroup
			if i+1 < len(js) && js[i+1] == '}' {
				decoded -= sizeGroup
			}
		case '[':
			decoded += sizeText
		case ',':
			decoded += sizeOfSlot
		}
	}
	return decoded
}

// textEnd returns the end of a string, relative to its first character; if it is not terminated, the end of js.
func textEnd(js []byte) int {
	for i := 0; i < len(js); i++ {
		switch js[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(js)
}
