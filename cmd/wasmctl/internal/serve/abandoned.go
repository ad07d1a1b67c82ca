// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/stranded"
)

// Release takes the finalizers of a Reconciler's modules off their objects, unless its deletion policy is Orphan, and then the finalizer of
// wasmctl serve off the Reconciler. No process may serve it. Release returns the number of objects. It needs no Start.
func (s *Server) Release(ctx context.Context, object *unstructured.Unstructured) (n int, err error) {
	o, err := read(object.GetKind(), func(into any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
	})
	if err != nil {
		return 0, err
	}
	for o.spec.DeletionPolicy != v1alpha1.DeletionOrphan {
		found := &listing{}
		if found.list(ctx, s, o); found.failure != "" {
			return n, errors.New(found.failure)
		}
		if found.count() == 0 {
			break
		}
		if failure := found.release(ctx, s); failure != "" {
			return n, errors.New(failure)
		}
		for i := range found.batches {
			n += found.batches[i].done.all
		}
	}
	gvr := v1alpha1.GVR(o.kind) // not from discovery: the CRD may be about to go
	kind := kinds.Kind{Group: gvr.Group, Version: gvr.Version, Kind: o.kind, Resource: gvr.Resource, Namespaced: o.kind == v1alpha1.KindNamespaced}
	as, err := s.as("")
	if err != nil {
		return n, err
	}
	finder := &stranded.Finder{Client: as.lists, API: as.api, Kind: kind, Finalizer: finalizer}
	if r := finder.Release(ctx, []abi.Key{o.id().Key}, false)[0]; r.Error != "" {
		return n, errors.New(r.Error)
	}
	return n, nil
}
