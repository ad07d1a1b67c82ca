// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// createSub implements the subresources with a create operation: evictions and
// tokens.
func (s *server) createSub(r *request) (map[string]any, error) {
	want := map[string]struct {
		of   schema.GroupKind
		body string
	}{
		"eviction": {schema.GroupKind{Kind: "Pod"}, "Eviction"},
		"token":    {schema.GroupKind{Kind: "ServiceAccount"}, "TokenRequest"},
	}
	sub, ok := want[r.sub]
	switch {
	case !ok:
		return nil, fmt.Errorf("the fake does not create the subresource %s", r.sub)
	case text(r.object, "kind") != sub.body:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the subresource %s needs a body of the kind %s, not %s", r.sub, sub.body, text(r.object, "kind")))
	case r.gvk.GroupKind() != sub.of:
		return nil, r.notFound()
	}
	if r.sub == "eviction" {
		_, err := s.delete(r)
		return r.object, err
	}
	if _, err := s.stored(r); err != nil {
		return nil, err
	}
	r.object["status"] = map[string]any{"token": "fake-token", "expirationTimestamp": "6041-01-01T00:00:00Z"}
	return r.object, nil
}

// scalable lists the kinds of Kubernetes that have a Scale.
var scalable = kindsOf(map[string][]string{"": {"ReplicationController"}, "apps": {"Deployment", "ReplicaSet", "StatefulSet"}})

// scaleOf returns the Scale of an object. Custom resources need spec.replicas.
func (r *request) scaleOf(obj map[string]any) (map[string]any, error) {
	spec, _ := obj["spec"].(map[string]any)
	if spec["replicas"] == nil && !scalable[r.gvk.GroupKind()] {
		return nil, r.notFound()
	}
	status, _ := obj["status"].(map[string]any)
	selector, err := selectorOf(spec["selector"])
	if err != nil {
		return nil, err
	}
	md := map[string]any{}
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v := metadata(obj)[key]; v != nil {
			md[key] = v
		}
	}
	replicas, ok := spec["replicas"]
	if !ok {
		replicas = int64(1)
	}
	has, ok := status["replicas"]
	if !ok {
		has = int64(0)
	}
	return map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": md,
		"spec": map[string]any{"replicas": replicas}, "status": map[string]any{"replicas": has, "selector": selector},
	}, nil
}

// selectorOf returns a label selector, or the labels of a
// ReplicationController, as text.
func selectorOf(v any) (string, error) {
	m, _ := v.(map[string]any)
	_, byLabels := m["matchLabels"]
	_, byExpressions := m["matchExpressions"]
	if !byLabels && !byExpressions {
		m = map[string]any{"matchLabels": m}
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &selector); err != nil {
		return "", err
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return "", nil
	}
	return metav1.FormatLabelSelector(&selector), nil
}

// updateScale writes the replicas of a Scale into the object.
func (s *server) updateScale(r *request, scale map[string]any) (map[string]any, error) {
	if text(scale, "kind") != "Scale" {
		return nil, apierrors.NewBadRequest("the subresource scale needs a body of the kind Scale; use client.WithSubResourceBody")
	}
	old, err := s.stored(r)
	if err != nil {
		return nil, err
	}
	if _, err := r.scaleOf(old); err != nil {
		return nil, err
	}
	now := runtime.DeepCopyJSON(old)
	spec, ok := now["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		now["spec"] = spec
	}
	want, _ := scale["spec"].(map[string]any)
	if spec["replicas"] = want["replicas"]; want["replicas"] == nil {
		spec["replicas"] = int64(0)
	}
	if v := text(scale, "metadata", "resourceVersion"); v != "" {
		metadata(now)["resourceVersion"] = v
	}
	plain := *r
	plain.sub = ""
	written, err := s.replace(&plain, old, now, true)
	if err != nil {
		return nil, err
	}
	return r.scaleOf(written)
}

func (s *server) patchScale(r *request) (map[string]any, error) {
	old, err := s.stored(r)
	if err != nil {
		return nil, err
	}
	scale, err := r.scaleOf(old)
	if err != nil {
		return nil, err
	}
	if scale, err = s.patched(r, scale); err != nil {
		return nil, err
	}
	return s.updateScale(r, scale)
}
