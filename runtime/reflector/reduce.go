package reflector

import (
	"bytes"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// entry is one entry of a packed object's outermost map: its key, and key and
// value as they stand in msgpack.
type entry struct{ key, whole []byte }

// keep returns the part of the object b that opts keep, with the type that they
// give it. The result is b itself or belongs to the packer.
func (p *packer) keep(b []byte, opts Options) []byte {
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
	p.kept = abi.AppendMapHead(p.kept[:0], len(entries))
	for _, e := range entries {
		p.kept = append(p.kept, e.whole...)
	}
	return p.kept
}

// gives reports whether opts give the object b another type.
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
