// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
)

// cleanupLimit is the time limit for a cleanup after a test, when its context has ended.
const cleanupLimit = 10 * time.Second

// Namespace creates a namespace for the test, with a name derived from it, and returns the name. When the test ends, the namespace is
// deleted without waiting for it to be empty, which takes five seconds.
func Namespace(t testing.TB, c *devcluster.Cluster) string {
	t.Helper()
	namespaces := clientset(t, c.RESTConfig()).CoreV1().Namespaces()
	ns, err := namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix(t.Name())},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("namespace: %v", err)
	}
	cleanup(t, c, func(ctx context.Context) error {
		return namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{})
	})
	return ns.Name
}

// cleanup runs undo when the test ends, unless the control plane is gone by then. Errors are only logged, because the result of the test is
// still valid.
func cleanup(t testing.TB, c *devcluster.Cluster, undo func(context.Context) error) {
	t.Cleanup(func() {
		select {
		case <-c.Done():
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		if err := undo(ctx); err != nil && !apierrors.IsNotFound(err) {
			t.Logf("clean up: %v", err)
		}
	})
}

// namePrefix turns a test's name into a prefix for an object's name: RFC 1123 labels consist of lower case letters, digits and dashes, at
// most 63, of which the API server uses 5 for the random suffix.
func namePrefix(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	name = "t-" + strings.Trim(name, "-")
	return strings.TrimRight(name[:min(len(name), 50)], "-") + "-"
}

func clientset(t testing.TB, rc *rest.Config) *kubernetes.Clientset {
	t.Helper()
	cs, err := kubernetes.NewForConfig(rc)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	return cs
}
