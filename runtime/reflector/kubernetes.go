// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// These methods let client-go's list and watch machinery carry packed objects in place of decoded ones.
var (
	_ k8sruntime.Object         = (*Object)(nil)
	_ metav1.ObjectMetaAccessor = (*Object)(nil)
)

// GetObjectKind implements runtime.Object. The kind remains in the msgpack bytes, because that machinery does not need it.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. An Object is immutable, so it is its own copy.
func (o *Object) DeepCopyObject() k8sruntime.Object { return o }

// GetObjectMeta implements metav1.ObjectMetaAccessor with the fields that identify the object and its state; the others are empty.
func (o *Object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Name:            o.ref.Name,
		Namespace:       o.ref.Namespace,
		UID:             types.UID(o.uid),
		ResourceVersion: o.resourceVersion,
		Generation:      o.generation,
	}
}
