// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// GenerationChangedPredicate hides updates that do not change
// metadata.generation.
type GenerationChangedPredicate = TypedGenerationChangedPredicate[client.Object]

// TypedGenerationChangedPredicate is GenerationChangedPredicate for a type of
// object.
type TypedGenerationChangedPredicate[object metav1.Object] struct{ TypedFuncs[object] }

// Update implements TypedPredicate.
func (TypedGenerationChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return known(e) && e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration()
}

// ResourceVersionChangedPredicate hides updates without a write.
type ResourceVersionChangedPredicate = TypedResourceVersionChangedPredicate[client.Object]

// TypedResourceVersionChangedPredicate is ResourceVersionChangedPredicate for a
// type of object.
type TypedResourceVersionChangedPredicate[object metav1.Object] struct{ TypedFuncs[object] }

// Update implements TypedPredicate.
func (TypedResourceVersionChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return known(e) && e.ObjectNew.GetResourceVersion() != e.ObjectOld.GetResourceVersion()
}

// AnnotationChangedPredicate hides updates that do not change the annotations.
type AnnotationChangedPredicate = TypedAnnotationChangedPredicate[client.Object]

// TypedAnnotationChangedPredicate is AnnotationChangedPredicate for a type of
// object.
type TypedAnnotationChangedPredicate[object metav1.Object] struct{ TypedFuncs[object] }

// Update implements TypedPredicate.
func (TypedAnnotationChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return known(e) && !maps.Equal(e.ObjectNew.GetAnnotations(), e.ObjectOld.GetAnnotations())
}

// LabelChangedPredicate hides updates that do not change the labels.
type LabelChangedPredicate = TypedLabelChangedPredicate[client.Object]

// TypedLabelChangedPredicate is LabelChangedPredicate for a type of object.
type TypedLabelChangedPredicate[object metav1.Object] struct{ TypedFuncs[object] }

// Update implements TypedPredicate.
func (TypedLabelChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return known(e) && !maps.Equal(e.ObjectNew.GetLabels(), e.ObjectOld.GetLabels())
}

// known reports whether an update has both objects.
func known[object any](e event.TypedUpdateEvent[object]) bool {
	return !isNil(e.ObjectOld) && !isNil(e.ObjectNew)
}
