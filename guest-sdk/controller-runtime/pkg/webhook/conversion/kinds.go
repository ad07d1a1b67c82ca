// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// Registry has the converters of kinds.
type Registry interface {
	// RegisterConverter sets the converter of a kind. It returns an error if
	// the kind already has one.
	RegisterConverter(gk schema.GroupKind, converter Converter) error
	// GetConverter returns the converter of a kind.
	GetConverter(gk schema.GroupKind) (Converter, bool)
}

// NewRegistry returns a registry without converters.
func NewRegistry() Registry { return &registry{all: map[schema.GroupKind]Converter{}} }

type registry struct {
	mu  sync.RWMutex
	all map[schema.GroupKind]Converter
}

// RegisterConverter implements Registry.
func (r *registry) RegisterConverter(gk schema.GroupKind, converter Converter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[gk] != nil {
		return fmt.Errorf("converter[%s]: already exists", gk)
	}
	r.all[gk] = converter
	return nil
}

// GetConverter implements Registry.
func (r *registry) GetConverter(gk schema.GroupKind) (Converter, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.all[gk]
	return c, ok
}

// versionsOf returns all versions of a kind in the scheme.
func versionsOf(scheme *runtime.Scheme, of schema.GroupKind) []schema.GroupVersionKind {
	var list []schema.GroupVersionKind
	for _, gv := range scheme.VersionsForGroupKind(of) {
		list = append(list, gv.WithKind(of.Kind))
	}
	return list
}

// IsConvertible reports whether the kind of obj has several versions, one of
// which is the hub, to which all others convert. It returns an error if that is
// true only for some of the versions.
func IsConvertible(scheme *runtime.Scheme, obj runtime.Object) (bool, error) {
	own, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return false, err
	}
	versions := versionsOf(scheme, own.GroupKind())
	e := PartialImplementationError{kind: own.GroupKind()}
	spokes := 0
	for _, gvk := range versions {
		made, err := scheme.New(gvk)
		if err != nil {
			return false, err
		}
		switch made.(type) {
		case conversion.Hub:
			e.hubs++
		case conversion.Convertible:
			spokes++
		default:
			e.others++
		}
	}
	switch {
	case len(versions) == 1 || e.hubs == 0 && spokes == 0:
		return false, nil
	case e.hubs == 1 && e.others == 0:
		return true, nil
	}
	return false, e
}

// PartialImplementationError is the error of a kind with some versions that do
// not convert.
type PartialImplementationError struct {
	kind         schema.GroupKind
	hubs, others int
}

// Error implements error.
func (e PartialImplementationError) Error() string {
	return fmt.Sprintf("kind[%s]: %d of its versions are hubs, and %d convert to none: one has to be the hub, to which all others convert",
		e.kind, e.hubs, e.others)
}

// Decoder decodes objects of the scheme.
type Decoder struct{ scheme *runtime.Scheme }

// NewDecoder returns a decoder for JSON.
func NewDecoder(scheme *runtime.Scheme) *Decoder {
	if scheme == nil {
		panic("conversion: NewDecoder: the scheme is nil")
	}
	return &Decoder{scheme}
}

// Decode decodes an object, whose content names its kind.
func (d *Decoder) Decode(content []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	var says metav1.TypeMeta
	if err := json.Unmarshal(content, &says); err != nil {
		return nil, nil, fmt.Errorf("decode: %w", err)
	}
	gvk := says.GroupVersionKind()
	obj, err := d.scheme.New(gvk)
	if err != nil {
		return nil, nil, err
	}
	return obj, &gvk, d.DecodeInto(content, obj)
}

// DecodeInto decodes an object.
func (*Decoder) DecodeInto(content []byte, into runtime.Object) error {
	return json.Unmarshal(content, into)
}
