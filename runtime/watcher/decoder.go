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

// decoder makes packed objects of what the API server sends on one watch. It is
// client-go's decoder of the objects in watch events and of refusals.
type decoder struct {
	source  Source
	options reflector.Options
	store   *reflector.Store
	log     *slog.Logger
	// compressor is that of the store; nil: nothing is compressed.
	compressor *reflector.Compressor

	decoded *atomic.Int64 // bytes of objects

	onlyJSON atomic.Bool          // what came as protobuf was not read
	kind     atomic.Pointer[kind] // of the last object in protobuf
}

// unpacked is an object that cannot be packed, and why: a bookmark, which has no
// name, or one that has to be left out.
type unpacked struct {
	*unstructured.Unstructured
	err error
}

// DeepCopyObject implements runtime.Object.
func (u *unpacked) DeepCopyObject() k8sruntime.Object { return u }

// Decode implements runtime.Decoder. The result is a *reflector.Object, a
// *metav1.Status or an *unpacked; the error says that data is no object.
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

// known returns the store's own copy where the store has this very state, so
// that a list of what is known keeps no second copy.
func (d *decoder) known(o *reflector.Object) *reflector.Object {
	if known := d.store.Get(o.Ref()); known != nil && known.Same(o) {
		return known
	}
	return o
}

// packed returns the packed object that came as obj. An object that cannot be
// packed must not stop the others: with a warning it is left out (nil) or, where
// the store has it, stands at its last state, so that it is not taken for
// deleted and its deletion is seen.
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

// listed is packed for an object of a list. One that the store does not have yet is
// compressed at once: else the first list would be in memory as a whole.
func (d *decoder) listed(obj k8sruntime.Object) *reflector.Object {
	o := d.packed(obj)
	if o != nil && d.compressor != nil && d.store.Get(o.Ref()) == nil {
		d.compressor.Compress(o)
	}
	return o
}

// bookmarkOf returns what a bookmark says, however it was decoded.
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

// negotiator gives client-go the decoders of one watch.
type negotiator struct{ objects *decoder }

// Encoder implements runtime.ClientNegotiator. Nothing is ever sent.
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

// readOnly is the half of a serializer that is never used.
type readOnly struct{}

// Encode implements runtime.Encoder.
func (readOnly) Encode(k8sruntime.Object, io.Writer) error { return errors.ErrUnsupported }

// Identifier implements runtime.Encoder.
func (readOnly) Identifier() k8sruntime.Identifier { return "watcher" }
