// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How objects are cached.
const (
	asTyped        = "typed"
	asUnstructured = "unstructured"
	asMetadata     = "metadata"
)

// reconciler reconciles objects of one kind.
type reconciler struct {
	client  client.Client
	kind    kind
	as      string
	log     *slog.Logger
	logRuns bool
}

// object returns a new object of the kind.
func (r *reconciler) object() client.Object {
	switch r.as {
	case asTyped:
		return r.kind.object()
	case asMetadata:
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(r.kind.gvk)
		return m
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind.gvk)
	return u
}

// list returns a new list of such objects.
func (r *reconciler) list() client.ObjectList {
	gvk := r.kind.gvk.GroupVersion().WithKind(r.kind.gvk.Kind + "List")
	switch r.as {
	case asTyped:
		return r.kind.list()
	case asMetadata:
		m := &metav1.PartialObjectMetadataList{}
		m.SetGroupVersionKind(gvk)
		return m
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(gvk)
	return u
}

// newChild returns an empty child of a ConfigMapGenerator.
func (r *reconciler) newChild() client.Object {
	if r.as == asTyped {
		return &corev1.ConfigMap{}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return u
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	begin := time.Now()
	object := r.object()
	switch err = r.client.Get(ctx, req.NamespacedName, object); {
	case err != nil:
		err = client.IgnoreNotFound(err)
	case r.kind.gvk.Kind == generatorKind:
		result, err = r.generate(ctx, object)
	default:
		err = r.label(ctx, object, read(object))
	}
	if r.logRuns {
		r.log.LogAttrs(ctx, slog.LevelInfo, "reconciled", slog.String("object", req.String()), slog.Duration("duration", time.Since(begin)))
	}
	return result, err
}

// label labels a pod whose node name begins with "label-". With metadata only, there is no node name.
func (r *reconciler) label(ctx context.Context, o client.Object, read [3]string) error {
	node := read[1]
	if !strings.HasPrefix(node, "label-") || o.GetLabels()["node"] == node {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"node":%q}}}`, node))
	return r.client.Patch(ctx, o, patch)
}

// read reads the same three fields as the module.
func read(o client.Object) [3]string {
	switch o := o.(type) {
	case *corev1.Pod:
		return [3]string{o.Name, o.Spec.NodeName, string(o.Status.Phase)}
	case *corev1.ConfigMap:
		return [3]string{o.Name, o.Labels["tier"], o.Data["config.yaml"]}
	case *unstructured.Unstructured:
		if o.GetKind() == "Pod" {
			node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			return [3]string{o.GetName(), node, phase}
		}
		data, _, _ := unstructured.NestedString(o.Object, "data", "config.yaml")
		return [3]string{o.GetName(), o.GetLabels()["tier"], data}
	}
	return [3]string{o.GetName(), o.GetLabels()["tier"], o.GetNamespace()}
}

// saySynced logs when the cache has all objects.
func (r *reconciler) saySynced(ctx context.Context, c cache.Cache) error {
	if _, err := c.GetInformer(ctx, r.object()); err != nil {
		return err
	}
	r.log.Info("watches have synced")
	return nil
}
