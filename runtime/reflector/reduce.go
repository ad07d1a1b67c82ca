// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// entry is one entry of the top-level map of a packed object: its key, and the msgpack of key and value.
type entry struct{ key, pair []byte }

// reduce returns the part of the object b that opts select, with the type that they set. The result is b itself or belongs to the packer.
func (p *packer) reduce(b []byte, opts Options) []byte {
	typed := opts.gives(b)
	if !opts.Metadata && !typed {
		return b
	}
	var entries []entry
	given := map[string]string{"apiVersion": opts.APIVersion, "kind": opts.Kind}
	c := packed.At(b)
	for range c.MapLen() {
		from := c.Rest()
		key := c.Text()
		c.Skip()
		own := !typed || given[string(key)] == ""
		if own && (!opts.Metadata || isMetadata(string(key))) {
			entries = append(entries, entry{key, from[:len(from)-len(c.Rest())]})
		}
	}
	for key, value := range given {
		if typed && value != "" {
			entries = append(entries, entry{[]byte(key), appendStrings(nil, key, value)})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	p.reduced = abi.AppendMapHead(p.reduced[:0], len(entries))
	for _, e := range entries {
		p.reduced = append(p.reduced, e.pair...)
	}
	return p.reduced
}

// gives reports whether opts set a different type for the object b.
func (opts Options) gives(b []byte) bool {
	if opts.APIVersion == "" && opts.Kind == "" {
		return false
	}
	return !opts.TypeIfMissing || len(textAt(b, "apiVersion")) == 0 || len(textAt(b, "kind")) == 0
}

func isMetadata(key string) bool { return key == "apiVersion" || key == "kind" || key == "metadata" }

func appendStrings(dst []byte, texts ...string) []byte {
	for _, s := range texts {
		dst, _ = abi.AppendValue(dst, s) // a string is always a value
	}
	return dst
}
