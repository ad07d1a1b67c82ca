// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"slices"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// kinds are the kinds to find, encoded in msgpack.
var kinds = [][]byte{[]byte("\xa4kind\xa6Secret"), []byte("\xa4kind\xaaSecretList"), []byte("\xa4kind\xacTokenRequest")}

var kindKey = []byte("\xa4kind")

// listTail is the size of the end of a list that is searched for its kind. The metadata follows the
// kind, with a possible continue token.
const listTail = 8 << 10

// isSecretMessage reports whether a message claims to be, or to be a list of, something with hidden
// values. Other messages cost only this check. It therefore searches for the kind only where
// abi.AppendValue puts it: keys are ordered, and the kind is the second key of most objects and
// follows the items of a list.
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
