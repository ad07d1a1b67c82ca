package packed

// Sizes of Go's values, about: an interface, a string's bytes rounded up, an
// empty map, and a map's slot for a key and a value at an average load.
const (
	sizeValue  = 16
	sizeText   = 24
	sizeMap    = 48
	sizeGroup  = 280 // of up to eight keys
	sizeOfSlot = 64
)

// Measure returns how many values and keys a value consists of, and about how
// many bytes it takes once it is decoded into Go's maps and slices. After bytes
// that are no value it stops.
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

// MeasureJSON is Measure for JSON: about how many bytes a text takes once it is
// decoded. Texts in it are skipped, so that JSON within JSON is only a text.
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

// textEnd returns where a text ends, counted from behind its first quote; that of
// the whole where it does not.
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
