package redact

import (
	"bytes"
	"slices"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// Encodings in msgpack of the kinds to find.
var kinds = [][]byte{[]byte("\xa4kind\xa6Secret"), []byte("\xa4kind\xaaSecretList"), []byte("\xa4kind\xacTokenRequest")}

var kindKey = []byte("\xa4kind")

// listTail is how much of the end of a list is searched for its kind: metadata
// stands behind it, a token to continue with included.
const listTail = 8 << 10

// isSecretMessage reports whether a message says that it is, or is a list of,
// something whose values are hidden. It is all that messages without one cost, so
// what says its kind where abi.AppendValue puts it is not searched: keys are in
// order there, kind the second of most objects and after the items of a list.
func isSecretMessage(message []byte) bool {
	c := packed.At(message)
	if c.MapLen() > 0 && string(c.Text()) == "apiVersion" && c.Text() != nil {
		at := c.Rest()
		switch string(c.Text()) {
		case "kind":
			return startsWithKind(at)
		case "items":
			tail := at[max(0, len(at)-listTail):]
			if i := bytes.LastIndex(tail, kindKey); i >= 0 {
				return startsWithKind(tail[i:])
			}
		}
	}
	c = packed.At(message)
	for range c.MapLen() {
		at := c.Rest()
		if string(c.Text()) == "kind" {
			return startsWithKind(at)
		}
		c.Skip()
	}
	return false
}

func startsWithKind(b []byte) bool {
	return slices.ContainsFunc(kinds, func(kind []byte) bool { return bytes.HasPrefix(b, kind) })
}
