// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "default"
	name      = "hello"
)

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	generators = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func (d *demo) generator() dynamic.ResourceInterface {
	return d.client.Resource(generators).Namespace(namespace)
}

func (d *demo) configMap() dynamic.ResourceInterface {
	return d.client.Resource(configMaps).Namespace(namespace)
}

// until calls f every 50 ms until it returns true or ctx ends. last is its last observation.
func until(ctx context.Context, f func() (ok bool, last string)) error {
	last := ""
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (ok bool, err error) {
		ok, last = f()
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("last seen: %s", last)
	}
	return nil
}

func (d *demo) installCRD(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(d.example, "crd.yaml"))
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		return err
	}
	if _, err := d.client.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, func() (bool, string) {
		_, err := d.generator().List(ctx, metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// wantChild waits until the ConfigMap has the content, and a UID other than not.
func (d *demo) wantChild(ctx context.Context, content string, not types.UID) (uid types.UID, err error) {
	err = until(ctx, func() (bool, string) {
		child, err := d.configMap().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		uid = child.GetUID()
		got, _, _ := unstructured.NestedString(child.Object, "data", "content")
		return got == content && uid != not, fmt.Sprintf("ConfigMap %s with content %q", uid, got)
	})
	if err == nil {
		fmt.Printf("    ConfigMap %s/%s: content: %q\n", namespace, name, content)
	}
	return uid, err
}

func (d *demo) create(ctx context.Context) error {
	_, err := d.generator().Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"content": "hello, world"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = d.wantChild(ctx, "hello, world", "")
	return err
}

func (d *demo) change(ctx context.Context) error {
	patch := []byte(`{"spec":{"content":"hello again"}}`)
	if _, err := d.generator().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err := d.wantChild(ctx, "hello again", "")
	return err
}

func (d *demo) deleteChild(ctx context.Context) error {
	uid, err := d.wantChild(ctx, "hello again", "")
	if err != nil {
		return err
	}
	if err := d.configMap().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = d.wantChild(ctx, "hello again", uid)
	return err
}

func (d *demo) deleteOwner(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	if err := d.generator().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return err
	}
	return until(ctx, func() (bool, string) {
		_, err := d.configMap().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprintf("the ConfigMap is still there (%v)", err)
	})
}
