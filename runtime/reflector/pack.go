package reflector

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/protobuf"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// Options say what of an object is kept.
type Options struct {
	// ManagedFields keeps metadata.managedFields. They are dropped otherwise:
	// they are a quarter or more of an object and hardly any controller reads them.
	ManagedFields bool
	// Metadata keeps nothing but metadata, apiVersion and kind.
	Metadata bool
	// APIVersion and Kind, where set, are put in place of the object's own: one
	// that was asked for as PartialObjectMetadata says that it is of that kind.
	APIVersion, Kind string
	// TypeIfMissing puts APIVersion and Kind only into an object that lacks
	// either, as the items of most lists do.
	TypeIfMissing bool
}

// Pack makes an Object of content, the JSON-like map inside an
// unstructured.Unstructured. The map is only read. The error names the field:
// something that no API server sends, or a value that may not cross the sandbox
// wall, such as an object nested deeper than abi.MaxDepth.
func Pack(content map[string]any, opts Options) (*Object, error) {
	p := packers.Get().(*packer)
	defer p.release()
	if !opts.ManagedFields {
		content = withoutManagedFields(content)
	}
	b, err := abi.AppendValue(p.buf[:0], content)
	if err != nil {
		meta, _ := content["metadata"].(map[string]any)
		return nil, fmt.Errorf("object[%v]: encode: %w", meta["name"], err)
	}
	p.buf = b
	return p.pack(b, opts)
}

// PackJSON makes an Object of the JSON of one object: what decoding it and Pack
// make of it, at a tenth of the cost. The bytes are only read, and not kept. The
// error is that of Pack, or says why js is no JSON.
func PackJSON(js []byte, opts Options) (*Object, error) {
	p := packers.Get().(*packer)
	defer p.release()
	p.json.DropManagedFields = !opts.ManagedFields
	b, ok := p.json.Append(p.buf[:0], js)
	if ok {
		p.buf = b
		return p.pack(b, opts)
	}
	var content map[string]any
	if err := json.Unmarshal(js, &content); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return Pack(content, opts)
}

// ErrNotRead says that an object has to be read as JSON: its protobuf has something
// that this version does not know.
var ErrNotRead = errors.New("protobuf with unknown fields")

// PackProtobuf makes an Object of the protobuf of one object of kind m: what PackJSON
// makes of its JSON, at half of the cost. The bytes are only read, and not kept. The
// error is ErrNotRead or that of Pack.
func PackProtobuf(m *protobuf.Message, apiVersion, kind string, pb []byte, opts Options) (*Object, error) {
	p := packers.Get().(*packer)
	defer p.release()
	p.protobuf.DropManagedFields = !opts.ManagedFields
	b, ok := p.protobuf.Append(p.buf[:0], m, apiVersion, kind, pb)
	if !ok {
		return nil, ErrNotRead
	}
	p.buf = b
	return p.pack(b, opts)
}

// withoutManagedFields returns content without metadata.managedFields; it copies
// what it has to change.
func withoutManagedFields(content map[string]any) map[string]any {
	meta, ok := content["metadata"].(map[string]any)
	if _, managed := meta["managedFields"]; !ok || !managed {
		return content
	}
	meta = maps.Clone(meta)
	delete(meta, "managedFields")
	content = maps.Clone(content)
	content["metadata"] = meta
	return content
}

// packer is what packing one object needs for a moment, so that the bytes that
// are kept can be allocated at exactly their size.
type packer struct {
	json     transcode.Transcoder
	protobuf protobuf.Transcoder
	buf      []byte // the whole object
	kept     []byte // the part of it that is kept, where that is less
	text     []byte // what the Object's own fields say
	spans    []int  // where each of them ends in text
	// names has the strings that repeat from object to object, so that looking
	// one up allocates nothing. It is forgotten with the packer.
	names map[string]unique.Handle[string]
}

// Bounds of what a packer keeps from one object to the next.
const (
	maxScratch = 1 << 20
	maxNames   = 1024
)

var packers = sync.Pool{New: func() any { return &packer{names: map[string]unique.Handle[string]{}} }}

// release makes the packer free for others, unless it has grown too large.
func (p *packer) release() {
	if cap(p.buf)+cap(p.kept)+cap(p.text) <= maxScratch {
		packers.Put(p)
	}
}

// share returns the one copy of a string.
func (p *packer) share(s []byte) unique.Handle[string] {
	h, ok := p.names[string(s)]
	if !ok {
		if len(p.names) >= maxNames {
			clear(p.names)
		}
		h = unique.Make(string(s))
		p.names[h.Value()] = h
	}
	return h
}

// pack makes an Object of msgpack that abi.AppendValue or a transcode.Transcoder
// wrote: a map with sorted keys.
func (p *packer) pack(b []byte, opts Options) (*Object, error) {
	o, err := p.read(b)
	if err != nil {
		meta := packed.Find(b, "metadata")
		ref := ObjectRef{Namespace: string(textAt(meta, "namespace")), Name: string(textAt(meta, "name"))}
		if ref.Name == "" {
			return nil, fmt.Errorf("object: metadata: %w", err)
		}
		return nil, fmt.Errorf("object[%s]: metadata: %w", ref, err)
	}
	if b = p.keep(b, opts); len(b) > abi.MaxBytes {
		return nil, fmt.Errorf("object[%s]: encode: %w", o.ref, abi.ErrTooLarge)
	}
	plain := make([]byte, len(b))
	copy(plain, b)
	o.size = uint32(len(b)) //nolint:gosec // at most abi.MaxBytes
	o.body.Store(&body{bytes: plain})
	return o, nil
}
