// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/stranded"
)

// Reconcilers returns the Reconcilers and ClusterReconcilers that the Server is for, in full. If limit is not 0, it returns at most that number of
// each list. A kind without a CRD has none. It needs no Start.
func (s *Server) Reconcilers(ctx context.Context, limit int64) (all []unstructured.Unstructured, err error) {
	for _, kind := range s.served() {
		gvr := v1alpha1.GVR(kind)
		for _, ns := range kubeapi.OrAny(s.cfg.Namespaces) {
			list, err := s.client.Resource(gvr).Namespace(ns).List(ctx, metav1.ListOptions{Limit: limit})
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				return nil, fmt.Errorf("%s: list: %w", gvr.GroupResource(), err)
			}
			all = append(all, list.Items...)
		}
	}
	return all, nil
}

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
	finder := &stranded.Finder{Client: as.lists, API: as.api, Kind: kind, Finalizer: Finalizer}
	if r := finder.Release(ctx, []abi.Key{o.id().Key}, false)[0]; r.Error != "" {
		return n, errors.New(r.Error)
	}
	return n, nil
}
