// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// awaitServed waits until every version of the CRD that should be served is served, and returns the current CRD.
func (a *applier) awaitServed(ctx context.Context, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := crd.GetName()
	crds := a.client.Resource(crd.GroupVersionKind().GroupVersion().WithResource("customresourcedefinitions"))
	err := poll(ctx, 50*time.Millisecond, servedLimit, func(ctx context.Context) (err error) {
		if crd, err = crds.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return a.served(ctx, crd)
	})
	if err != nil {
		return nil, fmt.Errorf("not served: %w", err)
	}
	return crd, nil
}

// served returns why a client cannot use the CRD's kind yet, or nil.
func (a *applier) served(ctx context.Context, crd *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(conditions, isEstablished) {
		return fmt.Errorf("not established: %v", conditions)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		if err := a.listed(ctx, schema.GroupVersionResource{Group: group, Version: name, Resource: plural}); err != nil {
			return fmt.Errorf("version %s: %w", name, err)
		}
	}
	return nil
}

func isEstablished(condition any) bool {
	c, ok := condition.(map[string]any)
	return ok && c["type"] == "Established" && c["status"] == "True"
}

// listed returns why the resource is not in discovery or cannot be listed, or nil.
func (a *applier) listed(ctx context.Context, gvr schema.GroupVersionResource) error {
	known, err := a.discovery.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(known.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource }) {
		return fmt.Errorf("%s is not in discovery", gvr.Resource)
	}
	_, err = a.client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
