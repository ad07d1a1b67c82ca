// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a Kubernetes object: a typed one, an Unstructured, or a
// PartialObjectMetadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// ObjectList is a list of Kubernetes objects.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}
