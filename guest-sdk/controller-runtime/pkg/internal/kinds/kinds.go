// Package kinds maps kinds to resources, without an API server to ask.
package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// OfItems returns the kind of the items of a list, or of an object.
func OfItems(list runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(list, scheme)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}
