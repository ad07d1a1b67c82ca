// SPDX-License-Identifier: Apache-2.0

// Command native is the configmapgenerator example as a plain client-go
// controller: the peer that the module is measured against. It does what
// examples/configmapgenerator does, request for request.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const manager = "native"

var (
	generators = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	namespace := flag.String("namespace", "", "namespace to work in")
	workers := flag.Int("workers", 4, "maximum number of concurrent reconciles")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rc, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	rc.QPS = -1
	client, err := dynamic.NewForConfig(rc)
	if err != nil {
		fail(err)
	}
	if err := newController(client, *namespace).run(ctx, *workers); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "native:", err)
	os.Exit(1)
}

// reconcile applies the ConfigMap that gen requests, and reports that in gen's status.
func reconcile(ctx context.Context, client dynamic.Interface, gen *unstructured.Unstructured) (time.Duration, error) {
	if gen.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	content, _, _ := unstructured.NestedString(gen.Object, "spec", "content")
	yes := true
	child := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": gen.GetName(), "namespace": gen.GetNamespace()},
		"data":     map[string]any{"content": content},
	}}
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: gen.GetAPIVersion(), Kind: gen.GetKind(), Name: gen.GetName(), UID: gen.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}})
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if _, err := client.Resource(configMaps).Namespace(gen.GetNamespace()).Apply(ctx, gen.GetName(), child, options); err != nil {
		return 0, err
	}
	return 300 * time.Second, writeStatus(ctx, client, gen, options)
}

func writeStatus(ctx context.Context, client dynamic.Interface, gen *unstructured.Unstructured, options metav1.ApplyOptions) error {
	if observed, _, _ := unstructured.NestedInt64(gen.Object, "status", "observedGeneration"); observed == gen.GetGeneration() {
		return nil
	}
	status := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gen.GetAPIVersion(), "kind": gen.GetKind(),
		"metadata": map[string]any{"name": gen.GetName(), "namespace": gen.GetNamespace()},
		"status": map[string]any{
			"observedGeneration": gen.GetGeneration(),
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Applied", "message": "the ConfigMap is up to date",
				"observedGeneration": gen.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			}},
		},
	}}
	_, err := client.Resource(generators).Namespace(gen.GetNamespace()).ApplyStatus(ctx, gen.GetName(), status, options)
	return err
}
