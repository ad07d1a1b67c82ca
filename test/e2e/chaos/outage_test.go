// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// mirrors are SecretMirrors, one for each of several Secrets, and the namespaces for the
// copies. The module secretmirror maps Secrets and namespaces to mirrors, and declares
// the copies.
type mirrors struct {
	*e2e.Fleet
	*e2e.Process
	n int
}

// newMirrors starts wasmctl with the module secretmirror. Its kind is cluster-scoped, so
// the control plane must belong to the test.
func newMirrors(t *testing.T, cluster *devcluster.Cluster, n int) *mirrors {
	t.Helper()
	devclustertest.ApplyFile(t, cluster, "../../../examples/secretmirror/crd.yaml")
	m := &mirrors{Fleet: e2e.NewFleet(t, cluster), n: n}
	m.Process = e2e.Run(t, e2e.Example(t, "secretmirror"), "--socket", "none", "--kubeconfig", cluster.Kubeconfig())
	for i := range n {
		devclustertest.Apply(t, cluster, fmt.Appendf(nil, `
{apiVersion: v1, kind: Secret, metadata: {name: s%[1]d, namespace: %[2]q}, stringData: {turn: first}}
---
{apiVersion: examples.wasmctl.dev/v1, kind: SecretMirror, metadata: {name: m%[1]d}, spec: {source: {name: s%[1]d, namespace: %[2]q}, namespaces: "mirrored=yes"}}
`, i, m.Ns))
	}
	return m
}

// change changes every Secret, and makes a namespace for copies of them, also while the
// API server is down. It returns the namespace.
func (m *mirrors) change(ctx context.Context, turn string) string {
	target := m.Ns + "-" + turn
	m.apply(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": target, "labels": map[string]any{"mirrored": "yes"}},
	})
	for i := range m.n {
		m.apply(ctx, e2e.Secrets, m.Ns, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": fmt.Sprint("s", i)}, "stringData": map[string]any{"turn": turn},
		})
	}
	return target
}

// apply tries until the API server has accepted the object.
func (m *mirrors) apply(ctx context.Context, gvr schema.GroupVersionResource, ns string, object map[string]any) {
	u := &unstructured.Unstructured{Object: object}
	for ctx.Err() == nil {
		_, err := m.Client.Resource(gvr).Namespace(ns).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "user", Force: true})
		if err == nil {
			return
		}
		e2e.Pause(ctx, 200*time.Millisecond)
	}
	m.Fleet.T.Errorf("%s was not applied: %v", u.GetName(), ctx.Err())
}

// confirm waits until each of the namespaces has a copy of each Secret with the content
// of a turn.
func (m *mirrors) confirm(turn string, namespaces ...string) {
	t := m.Fleet.T
	t.Helper()
	want := base64.StdEncoding.EncodeToString([]byte(turn))
	for _, ns := range namespaces {
		enginetest.Until(t, "copies in "+ns, func() bool {
			list, err := m.Client.Resource(e2e.Secrets).Namespace(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != m.n {
				return false
			}
			for _, u := range list.Items {
				if got, _, _ := unstructured.NestedString(u.Object, "data", "turn"); got != want {
					return false
				}
			}
			return true
		})
	}
	m.Signal(syscall.SIGTERM)
	m.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, m.Reconciles())
}

// TestChaos_ChildrenAndMappersOutliveTheAPIServer kills the API server with -9 under two
// controllers whose children are declared, one with a mapper of its own, while
// everything changes.
func TestChaos_ChildrenAndMappersOutliveTheAPIServer(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Own(t)
	m := newMirrors(t, cluster, 5)
	f := e2e.NewFleet(t, cluster)
	c := f.Start("--socket", "none")
	c.WantLine("reconciling")
	m.WantLine(`"msg":"reconciled"`)
	const apps, rounds = 20, 3
	var namespaces []string
	wait := f.Churn(t.Context(), apps, rounds)
	for i := range int64(2) {
		f.AwaitPuts((i + 1) * apps)
		if err := cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		changed := make(chan string, 1)
		go func() { changed <- m.change(t.Context(), fmt.Sprint("turn", i)) }()
		if err := cluster.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		namespaces = append(namespaces, <-changed)
	}
	wait()
	f.Confirm()
	m.confirm("turn1", namespaces...)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
}
