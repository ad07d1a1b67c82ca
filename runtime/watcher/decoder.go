// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// decoder turns the API server's responses on one watch into packed objects. It is client-go's decoder for the objects in watch events and
// for error responses.
type decoder struct {
	source  Source
	options reflector.Options
	store   *reflector.Store
	// newEpoch means that the store is of an earlier epoch: its versions are not comparable.
	newEpoch bool
	log      *slog.Logger
	// watches are the watches of the same kind. It is nil if the objects are not stored.
	watches *kindWatches

	decoded *atomic.Int64 // bytes of objects
	arrived *atomic.Int64 // objects of lists; nil if they are not counted

	onlyJSON atomic.Bool          // protobuf could not be read
	kind     atomic.Pointer[kind] // of the last object in protobuf
}

// unpacked is an object that cannot be packed, with the reason: a bookmark, which has no name, or an object that must be skipped.
type unpacked struct {
	*unstructured.Unstructured
	err error
}

// DeepCopyObject implements runtime.Object.
func (u *unpacked) DeepCopyObject() k8sruntime.Object { return u }

// Decode implements runtime.Decoder. The result is a *reflector.Object, a *metav1.Status or an *unpacked; it is an error if data is not an
// object.
func (d *decoder) Decode(data []byte, _ *schema.GroupVersionKind, _ k8sruntime.Object) (k8sruntime.Object, *schema.GroupVersionKind, error) {
	if bytes.HasPrefix(data, protobufMagic) {
		o, err := d.decodeProtobuf(data[len(protobufMagic):])
		return o, nil, err
	}
	o, err := d.decode(data, d.options)
	return o, nil, err
}

func (d *decoder) decode(data []byte, opts reflector.Options) (k8sruntime.Object, error) {
	d.decoded.Add(int64(len(data)))
	o, failure := reflector.PackJSON(data, opts)
	if failure == nil {
		return d.known(o), nil
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, err
	}
	if u.Object == nil {
		return nil, errors.New("want an object, got null")
	}
	if u.GetKind() == "Status" && u.GetAPIVersion() == "v1" {
		status := &metav1.Status{}
		return status, json.Unmarshal(data, status)
	}
	return &unpacked{u, failure}, nil
}

// known returns the copy of this watch or of another one if it has the same state, so that there are no second copies.
func (d *decoder) known(o *reflector.Object) *reflector.Object {
	if !d.newEpoch {
		if known := d.store.Get(o.Ref()); known != nil && known.Same(o) {
			return known
		}
	}
	if d.watches == nil {
		return o
	}
	return d.watches.known(o)
}

// packed returns the packed object of obj. An object that cannot be packed must not affect others: it is logged and skipped (nil). If the
// store has it, its last state is returned instead, so that it is not considered deleted and its deletion is noticed later.
func (d *decoder) packed(obj k8sruntime.Object) *reflector.Object {
	switch o := obj.(type) {
	case *reflector.Object:
		return o
	case *unpacked:
		ref := reflector.ObjectRef{Namespace: o.GetNamespace(), Name: o.GetName()}
		d.log.Warn("skipping an object that cannot be packed", "watch", d.source.String(), "object", ref.String(), "error", o.err)
		if known := d.store.Get(ref); known != nil && known.UID() == string(o.GetUID()) {
			return known
		}
		return nil
	}
	d.log.Warn("skipping a value that is not an object", "watch", d.source.String(), "error", fmt.Sprintf("got a %T", obj))
	return nil
}

// listed is like packed, for an object of a list, which is charged until it is stored; a nil list is never stored. The error is that of the
// tenant's bound. It compresses an object at once if no store has it yet; otherwise the complete first list would be in memory uncompressed.
func (d *decoder) listed(obj k8sruntime.Object, list *listing) (*reflector.Object, error) {
	if d.arrived != nil {
		d.arrived.Add(1)
	}
	o := d.packed(obj)
	if o == nil || list == nil {
		return o, nil
	}
	before := d.store.Get(o.Ref())
	if before == nil && d.watches.compressor != nil && !o.Stored() {
		d.watches.compressor.Compress(o)
	}
	return o, list.add(o, before)
}

// admitted is like packed, for an object of a change. The error is that of the tenant's bound.
func (d *decoder) admitted(obj k8sruntime.Object) (*reflector.Object, error) {
	o := d.packed(obj)
	if o == nil || d.watches == nil || o.Stored() {
		return o, nil
	}
	replaced := int64(0)
	if before := d.store.Get(o.Ref()); before != nil {
		replaced = before.Cost()
	}
	return o, d.watches.tenant.admit(o.Cost(), replaced)
}

// bookmarkOf returns the content of a bookmark, however it was decoded.
func bookmarkOf(obj k8sruntime.Object) *metav1.PartialObjectMetadata {
	b := &metav1.PartialObjectMetadata{}
	switch o := obj.(type) {
	case *unpacked:
		b.ResourceVersion, b.Annotations = o.GetResourceVersion(), o.GetAnnotations()
	case *reflector.Object:
		b.ResourceVersion, b.Annotations = o.ResourceVersion(), maps.Collect(o.Annotations())
	}
	return b
}

// negotiator provides client-go with the decoders of one watch.
type negotiator struct{ objects *decoder }

// Encoder implements runtime.ClientNegotiator. Requests have no body.
func (negotiator) Encoder(contentType string, _ map[string]string) (k8sruntime.Encoder, error) {
	return nil, k8sruntime.NegotiateError{ContentType: contentType}
}

// Decoder implements runtime.ClientNegotiator.
func (n negotiator) Decoder(contentType string, _ map[string]string) (k8sruntime.Decoder, error) {
	if contentType != "" && contentType != acceptObjects && contentType != acceptProtobuf {
		return nil, k8sruntime.NegotiateError{ContentType: contentType}
	}
	return n.objects, nil
}

// StreamDecoder implements runtime.ClientNegotiator.
func (n negotiator) StreamDecoder(contentType string, _ map[string]string) (k8sruntime.Decoder, k8sruntime.Serializer, k8sruntime.Framer, error) {
	if contentType == acceptProtobuf {
		return n.objects, protobufEventDecoder{}, serializer.LengthDelimitedFramer, nil
	}
	if contentType != "" && contentType != acceptObjects {
		return nil, nil, nil, k8sruntime.NegotiateError{ContentType: contentType, Stream: true}
	}
	return n.objects, eventDecoder{}, framer{}, nil
}

// readOnly provides the unused half of a serializer.
type readOnly struct{}

// Encode implements runtime.Encoder.
func (readOnly) Encode(k8sruntime.Object, io.Writer) error { return errors.ErrUnsupported }

// Identifier implements runtime.Encoder.
func (readOnly) Identifier() k8sruntime.Identifier { return "watcher" }
