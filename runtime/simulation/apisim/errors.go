package apisim

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
)

func (t *table) notFound(key abi.Key) error {
	return apierrors.NewNotFound(t.GroupResource(), key.Name)
}

func (t *table) conflict(key abi.Key, why string) error {
	return apierrors.NewConflict(t.GroupResource(), key.Name, fmt.Errorf("%s", why))
}

// empty returns an object that has only a type and a name.
func (t *table) empty(key abi.Key) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(t.GroupVersion().String())
	o.SetKind(t.Kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}
