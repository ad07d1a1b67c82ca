// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wasmctl/wasmctl/internal/protobuf"
	"github.com/wasmctl/wasmctl/internal/transcode"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// protobufMagic is the prefix of a protobuf response. A runtime.Unknown follows: the type, and the message of an object or a list.
var protobufMagic = []byte("k8s\x00")

var errProtobuf = errors.New("protobuf that is cut or wrong")

// kind is a type of objects received as protobuf.
type kind struct {
	typeMeta         string // the encoded TypeMeta
	apiVersion, name string
	table            *protobuf.Message // nil if the kind can be read only as JSON
}

// takesProtobuf reports whether objects of the source are requested as protobuf. API servers support it for built-in kinds, and answer with
// JSON for others.
func (d *decoder) takesProtobuf() bool {
	return !d.onlyJSON.Load() && scheme.Scheme.IsVersionRegistered(d.source.Resource.GroupVersion())
}

// decodeProtobuf decodes a runtime.Unknown as Decode does.
func (d *decoder) decodeProtobuf(data []byte) (k8sruntime.Object, error) {
	typeMeta, object, err := splitFields(data)
	if err != nil {
		return nil, err
	}
	k := d.kind.Load()
	if k == nil || k.typeMeta != string(typeMeta) {
		if k, err = kindOf(typeMeta); err != nil {
			return nil, err
		}
		d.kind.Store(k)
	}
	if k.name == "Status" && k.apiVersion == "v1" {
		status := &metav1.Status{}
		return status, status.Unmarshal(object)
	}
	return d.object(k, object)
}

// kindOf reads a runtime.TypeMeta.
func kindOf(typeMeta []byte) (*kind, error) {
	apiVersion, name, err := splitFields(typeMeta)
	if err != nil {
		return nil, err
	}
	return newKind(string(typeMeta), string(apiVersion), string(name)), nil
}

func newKind(typeMeta, apiVersion, name string) *kind {
	k := &kind{typeMeta: typeMeta, apiVersion: apiVersion, name: name}
	if t, ok := scheme.Scheme.AllKnownTypes()[schema.FromAPIVersionAndKind(apiVersion, name)]; ok {
		k.table, _ = protobuf.TableOf(t) // on failure, the kind is read as JSON
	}
	return k
}

// object packs the protobuf of an object. After the first object that cannot be read, all objects of the watch are requested as JSON.
func (d *decoder) object(k *kind, pb []byte) (k8sruntime.Object, error) {
	d.decoded.Add(int64(len(pb)))
	failure := reflector.ErrNotRead
	if k.table != nil {
		var o *reflector.Object
		if o, failure = reflector.PackProtobuf(k.table, k.apiVersion, k.name, pb, d.options); failure == nil {
			return d.known(o), nil
		}
	}
	if errors.Is(failure, reflector.ErrNotRead) {
		return nil, d.notRead(k)
	}
	known := &metav1.PartialObjectMetadata{} // metadata is the first field of all kinds
	if err := known.Unmarshal(pb); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(k.apiVersion)
	u.SetKind(k.name)
	u.SetNamespace(known.Namespace)
	u.SetName(known.Name)
	u.SetUID(known.UID)
	u.SetResourceVersion(known.ResourceVersion)
	u.SetAnnotations(known.Annotations)
	return &unpacked{u, failure}, nil
}

// notRead makes the watch request JSON from now on, and logs it.
func (d *decoder) notRead(k *kind) error {
	d.onlyJSON.Store(true)
	d.log.Debug("reading objects as JSON: their protobuf is not known", "watch", d.source.String(), "kind", k.name)
	return fmt.Errorf("kind[%s]: %w", k.name, reflector.ErrNotRead)
}

// opaqueFields returns the fields of a built-in kind that are opaque JSON.
func opaqueFields(resource schema.GroupVersionResource) transcode.Fields {
	for name, t := range scheme.Scheme.KnownTypes(resource.GroupVersion()) {
		if plural, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(name)); plural != resource {
			continue
		}
		if m, err := protobuf.TableOf(t); err == nil {
			return m.Opaque()
		}
	}
	return nil
}

// protobufEventDecoder is the eventDecoder for protobuf.
type protobufEventDecoder struct{ readOnly }

// Decode implements runtime.Decoder, into a *metav1.WatchEvent.
func (protobufEventDecoder) Decode(data []byte, _ *schema.GroupVersionKind, into k8sruntime.Object) (k8sruntime.Object, *schema.GroupVersionKind, error) {
	ev, ok := into.(*metav1.WatchEvent)
	if !ok {
		return nil, nil, fmt.Errorf("BUG: want to decode a watch event, not a %T", into)
	}
	name, extension, err := splitFields(data)
	if err != nil {
		return nil, nil, err
	}
	ev.Type = string(name)
	if ev.Object.Raw, _, err = splitFields(extension); err == nil && len(ev.Object.Raw) == 0 {
		err = errors.New("event without an object")
	}
	return ev, nil, err
}

// splitFields returns fields 1 and 2 of a message as slices of b; if a field is repeated, its last value.
func splitFields(b []byte) (first, second []byte, err error) {
	for len(b) > 0 {
		num, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, nil, errProtobuf
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, wire, b)
		if size < 0 {
			return nil, nil, errProtobuf
		}
		if wire == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			if num == 1 {
				first = value
			}
			if num == 2 {
				second = value
			}
		}
		b = b[size:]
	}
	return first, second, nil
}
