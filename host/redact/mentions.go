package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// How msgpack writes the kinds that are looked for.
var kinds = [][]byte{[]byte("\xa4kind\xa6Secret"), []byte("\xa4kind\xaaSecretList"), []byte("\xa4kind\xacTokenRequest")}

var kindKey = []byte("\xa4kind")

// listTail is how much of the end of a list is searched for its kind: metadata
// stands behind it, a token to continue with included.
const listTail = 8 << 10

// mentions reports whether a message may hold a Secret. It is all that messages
// without one cost, so what says its kind where abi.AppendValue puts it is not
// searched: keys are in order there, kind the second of most objects and after
// the items of a list.
func mentions(message []byte) bool {
	r := &skimmer{b: message}
	if r.mapHead() && string(r.str()) == "apiVersion" && r.str() != nil {
		at := r.pos
		switch string(r.str()) {
		case "kind":
			return startsWithKind(message[at:])
		case "items":
			tail := message[max(at, len(message)-listTail):]
			if i := bytes.LastIndex(tail, kindKey); i >= 0 {
				return startsWithKind(tail[i:])
			}
		}
	}
	return slices.ContainsFunc(kinds, func(kind []byte) bool { return bytes.Contains(message, kind) })
}

func startsWithKind(b []byte) bool {
	return slices.ContainsFunc(kinds, func(kind []byte) bool { return bytes.HasPrefix(b, kind) })
}

// skimmer reads the beginning of a map in msgpack.
type skimmer struct {
	b   []byte
	pos int
}

// mapHead reads the head of a map, and reports whether there is one.
func (r *skimmer) mapHead() bool {
	switch {
	case len(r.b) == 0:
		return false
	case r.b[0]&0xf0 == 0x80:
		r.pos = 1
	case r.b[0] == 0xde:
		r.pos = 3
	case r.b[0] == 0xdf:
		r.pos = 5
	}
	return r.pos > 0
}

// str reads a string of less than 64 KiB; nil where there is none.
func (r *skimmer) str() []byte {
	rest := r.b[min(r.pos, len(r.b)):]
	var head, n int
	switch {
	case len(rest) < 3:
		return nil
	case rest[0]&0xe0 == 0xa0:
		head, n = 1, int(rest[0]&0x1f)
	case rest[0] == 0xd9:
		head, n = 2, int(rest[1])
	case rest[0] == 0xda:
		head, n = 3, int(binary.BigEndian.Uint16(rest[1:]))
	default:
		return nil
	}
	if head+n > len(rest) {
		return nil
	}
	r.pos += head + n
	return rest[head : head+n]
}
