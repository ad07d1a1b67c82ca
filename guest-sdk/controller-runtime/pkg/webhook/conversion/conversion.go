// SPDX-License-Identifier: Apache-2.0

// Package conversion has the converters of kinds with several versions. The
// host receives the requests to convert, and calls the module for each.
package conversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Converter converts objects of a kind.
type Converter interface {
	// ConvertObject converts src to the version of dst, and stores the result
	// in dst.
	ConvertObject(ctx context.Context, src, dst runtime.Object) error
}

// SpokeConverter converts between one version and the hub.
type SpokeConverter[hubObject runtime.Object] interface {
	// GetSpoke returns an object of the version.
	GetSpoke() runtime.Object
	// ConvertHubToSpoke converts to the version.
	ConvertHubToSpoke(ctx context.Context, hub hubObject, spoke runtime.Object) error
	// ConvertSpokeToHub converts from the version.
	ConvertSpokeToHub(ctx context.Context, spoke runtime.Object, hub hubObject) error
}

// NewSpokeConverter makes a converter from two functions.
func NewSpokeConverter[hubObject, spokeObject client.Object](
	spoke spokeObject, convertHubToSpokeFunc func(ctx context.Context, src hubObject, dst spokeObject) error,
	convertSpokeToHubFunc func(ctx context.Context, src spokeObject, dst hubObject) error,
) SpokeConverter[hubObject] {
	return funcs[hubObject, spokeObject]{spoke, convertHubToSpokeFunc, convertSpokeToHubFunc}
}

type funcs[hubObject, spokeObject client.Object] struct {
	spoke spokeObject
	from  func(context.Context, hubObject, spokeObject) error
	to    func(context.Context, spokeObject, hubObject) error
}

// GetSpoke implements SpokeConverter.
func (f funcs[hubObject, spokeObject]) GetSpoke() runtime.Object { return f.spoke }

// ConvertHubToSpoke implements SpokeConverter.
func (f funcs[hubObject, spokeObject]) ConvertHubToSpoke(ctx context.Context, hub hubObject, spoke runtime.Object) error {
	s, ok := spoke.(spokeObject)
	if !ok {
		return fmt.Errorf("convert to %T: want a %T", spoke, f.spoke)
	}
	return f.from(ctx, hub, s)
}

// ConvertSpokeToHub implements SpokeConverter.
func (f funcs[hubObject, spokeObject]) ConvertSpokeToHub(ctx context.Context, spoke runtime.Object, hub hubObject) error {
	s, ok := spoke.(spokeObject)
	if !ok {
		return fmt.Errorf("convert %T: want a %T", spoke, f.spoke)
	}
	return f.to(ctx, s, hub)
}

// NewHubSpokeConverter makes a converter from the converters of all versions
// except the hub.
func NewHubSpokeConverter[hubObject runtime.Object](hub hubObject, spokeConverter ...SpokeConverter[hubObject]) func(scheme *runtime.Scheme) (Converter, error) {
	return func(scheme *runtime.Scheme) (Converter, error) {
		gvk, err := apiutil.GVKForObject(hub, scheme)
		if err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
		star := &star[hubObject]{scheme, gvk, map[schema.GroupVersionKind]SpokeConverter[hubObject]{}}
		for _, c := range spokeConverter {
			spoke, err := apiutil.GVKForObject(c.GetSpoke(), scheme)
			switch {
			case err != nil:
				return nil, fmt.Errorf("hub[%s]: spoke: %w", gvk.Kind, err)
			case spoke.GroupKind() != gvk.GroupKind():
				return nil, fmt.Errorf("hub[%s]: the spoke is of the kind %s", gvk.Kind, spoke.Kind)
			case star.spokes[spoke] != nil:
				return nil, fmt.Errorf("hub[%s]: two converters of %s", gvk.Kind, spoke.Version)
			}
			star.spokes[spoke] = c
		}
		for _, version := range versionsOf(scheme, gvk.GroupKind()) {
			if version != gvk && star.spokes[version] == nil {
				return nil, fmt.Errorf("hub[%s]: no converter of %s", gvk.Kind, version.Version)
			}
		}
		return star, nil
	}
}

// star converts through the hub.
type star[hubObject runtime.Object] struct {
	scheme *runtime.Scheme
	hub    schema.GroupVersionKind
	spokes map[schema.GroupVersionKind]SpokeConverter[hubObject]
}

// ConvertObject implements Converter.
func (s *star[hubObject]) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	from, to := src.GetObjectKind().GroupVersionKind(), dst.GetObjectKind().GroupVersionKind()
	if from == to {
		return fmt.Errorf("convert %s: both objects are of this version", from)
	}
	hub, ok := src.(hubObject)
	if from != s.hub {
		if hub, ok = dst.(hubObject); to != s.hub {
			made, err := s.scheme.New(s.hub)
			if err != nil {
				return err
			}
			hub, ok = made.(hubObject)
		}
		if s.spokes[from] == nil || !ok {
			return fmt.Errorf("convert %s: there is no converter of this version", from)
		}
		if err := s.spokes[from].ConvertSpokeToHub(ctx, src, hub); err != nil || to == s.hub {
			return err
		}
	}
	if s.spokes[to] == nil || !ok {
		return fmt.Errorf("convert to %s: there is no converter of this version", to)
	}
	return s.spokes[to].ConvertHubToSpoke(ctx, hub, dst)
}
