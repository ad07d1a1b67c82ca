// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestClient_LeavesOutTheNamespaceOfWhatHasNone: programs pass the namespace of
// their own object for objects of all kinds.
func TestClient_LeavesOutTheNamespaceOfWhatHasNone(t *testing.T) {
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n"}}
		must(t, c.Create(ctx, n))
		if n.Namespace != "" {
			t.Errorf("created: %+v", n)
		}
		must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "n"}, n))
		n.Namespace, n.Labels = "default", map[string]string{"a": "b"}
		must(t, c.Update(ctx, n))
		n.Namespace = "default"
		old := n.DeepCopy()
		n.Labels = nil
		must(t, c.Patch(ctx, n, client.MergeFrom(old)))
		var all corev1.NodeList
		must(t, c.List(ctx, &all, client.InNamespace("default")))
		if len(all.Items) != 1 || all.Items[0].Namespace != "" || len(all.Items[0].Labels) > 0 {
			t.Errorf("%+v", all.Items)
		}
		n.Namespace = "default"
		must(t, c.Delete(ctx, n))
	})
	fine(t, result)
}
