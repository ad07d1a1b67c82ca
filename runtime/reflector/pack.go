// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/managed"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/protobuf"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// Options select the parts of an object that are stored.
type Options struct {
	// ManagedFields keeps metadata.managedFields. By default they are removed: they are a quarter or more of an object, and few controllers
	// read them.
	ManagedFields bool
	// Metadata keeps only metadata, apiVersion and kind.
	Metadata bool
	// APIVersion and Kind, if set, replace the object's own: an object that was requested as PartialObjectMetadata has that as its kind.
	APIVersion, Kind string
	// TypeIfMissing sets APIVersion and Kind only for an object that lacks either, such as the items of most lists.
	TypeIfMissing bool
	// Opaque are the fields of the kind that are opaque JSON, which PackJSON does not decode.
	Opaque transcode.Fields
}

// Pack makes an Object of content, the JSON-like map of an unstructured.Unstructured, which it does not change. The error names the invalid
// field: one that no API server would send, or a value that is not allowed in the sandbox, such as an object nested deeper than
// abi.MaxDepth.
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
	return p.pack(b, nil, opts)
}

// PackJSON makes an Object of the JSON of one object: the same as decoding it and calling Pack, at a tenth of the cost. It does not retain
// or change the bytes. The error is that of Pack, or a JSON syntax error.
func PackJSON(js []byte, opts Options) (*Object, error) {
	p := packers.Get().(*packer)
	defer p.release()
	p.json.OmitManagedFields, p.json.Opaque = !opts.ManagedFields, opts.Opaque
	b, ok := p.json.Append(p.buf[:0], js)
	if ok {
		p.buf = b
		return p.pack(b, p.json.Omitted, opts)
	}
	var content map[string]any
	if err := json.Unmarshal(js, &content); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return Pack(content, opts)
}

// ErrNotRead means that an object must be read as JSON, because its protobuf contains fields that this version does not know.
var ErrNotRead = errors.New("protobuf with unknown fields")

// PackProtobuf makes an Object of the protobuf of one object of kind m: the same as PackJSON for its JSON, at half the cost. It does not
// retain or change the bytes. The error is ErrNotRead or that of Pack.
func PackProtobuf(m *protobuf.Message, apiVersion, kind string, pb []byte, opts Options) (*Object, error) {
	p := packers.Get().(*packer)
	defer p.release()
	p.protobuf.OmitManagedFields = !opts.ManagedFields
	b, ok := p.protobuf.Append(p.buf[:0], m, apiVersion, kind, pb)
	if !ok {
		return nil, ErrNotRead
	}
	p.buf = b
	return p.pack(b, p.protobuf.Omitted, opts)
}

// withoutManagedFields returns content without metadata.managedFields. It copies the maps that it must change.
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

// packer holds the scratch buffers for packing one object, so that the result can be allocated at its exact size.
type packer struct {
	json     transcode.Transcoder
	protobuf protobuf.Transcoder
	buf      []byte // the complete object
	reduced  []byte // the selected part of it, if that is less
	managed  []byte // see Object.Applied
	text     []byte // the texts of the Object's own fields
	spans    []int  // the end of each of them in text
	// names caches the strings that recur between objects, so that looking one up allocates nothing. It is discarded with the packer.
	names map[string]unique.Handle[string]
}

// Bounds of the memory that a packer retains between objects.
const (
	maxScratch = 1 << 20
	maxNames   = 1024
)

// maxApplied bounds Object.Applied. It is not charged, because most objects share it with others. The fields of a Deployment take 1 KiB.
const maxApplied = 8 << 10

var packers = sync.Pool{New: func() any { return &packer{names: map[string]unique.Handle[string]{}} }}

// release returns the packer to the pool, unless it has grown too large.
func (p *packer) release() {
	if cap(p.buf)+cap(p.reduced)+cap(p.managed)+cap(p.text)+cap(p.json.Omitted)+cap(p.protobuf.Omitted) <= maxScratch {
		packers.Put(p)
	}
}

// share returns the interned string.
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

// pack makes an Object of msgpack written by abi.AppendValue or a transcode.Transcoder: a map with sorted keys. omitted is the msgpack of
// managedFields, if they are not part of it.
func (p *packer) pack(b, omitted []byte, opts Options) (*Object, error) {
	o, err := p.read(b)
	if err != nil {
		meta := packed.Find(b, "metadata")
		ref := ObjectRef{Namespace: string(textAt(meta, "namespace")), Name: string(textAt(meta, "name"))}
		if ref.Name == "" {
			return nil, fmt.Errorf("object: metadata: %w", err)
		}
		return nil, fmt.Errorf("object[%s]: metadata: %w", ref, err)
	}
	if b = p.reduce(b, opts); len(b) > abi.MaxBytes {
		return nil, fmt.Errorf("object[%s]: encode: %w", o.ref, abi.ErrTooLarge)
	}
	if !opts.Metadata {
		if p.managed = managed.Append(p.managed[:0], omitted, o.ControllerUID()); len(p.managed) > 0 && len(p.managed) <= maxApplied {
			o.applied = unique.Make(string(p.managed))
		}
	}
	plain := make([]byte, len(b))
	copy(plain, b)
	o.size = uint32(len(b)) //nolint:gosec // at most abi.MaxBytes
	o.body.Store(&body{bytes: plain})
	return o, nil
}
