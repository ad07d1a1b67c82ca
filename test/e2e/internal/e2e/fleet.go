// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// Fleet is the WebApps of a namespace, and their wanted state. The module webapp declares
// a Deployment for each, and a Service for those with a port.
type Fleet struct {
	T       *testing.T
	Cluster *devcluster.Cluster
	Client  dynamic.Interface // with all rights, directly to the API server
	Ns      string
	puts    atomic.Int64 // the number of changes that the API server has accepted

	Mu   sync.Mutex
	Want map[string]App // guarded by mu
}

// App is the wanted state of a WebApp. The zero App is a deleted one.
type App struct {
	Image string
	Port  bool
}

// NewFleet makes a namespace without any WebApps.
func NewFleet(t *testing.T, cluster *devcluster.Cluster) *Fleet {
	t.Helper()
	devclustertest.ApplyFile(t, cluster, root+"/examples/webapp/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &Fleet{T: t, Cluster: cluster, Client: client, Ns: devclustertest.Namespace(t, cluster), Want: map[string]App{}}
}

// SettleLimit bounds the wait until all objects are as wanted. A run that failed in an
// outage is retried by back-off.
const SettleLimit = 4 * time.Minute

// Start starts wasmctl with the module webapp for the namespace.
func (f *Fleet) Start(args ...string) *Process {
	f.T.Helper()
	return f.StartEnv(nil, append([]string{"--kubeconfig", f.Cluster.Kubeconfig()}, args...)...)
}

// StartEnv is Start with further environment variables, and without --kubeconfig.
func (f *Fleet) StartEnv(env []string, args ...string) *Process {
	f.T.Helper()
	return RunEnv(f.T, env, append([]string{Example(f.T, "webapp"), "-n", f.Ns}, args...)...)
}

// Put changes an App, and tries again until the API server has accepted the change.
func (f *Fleet) Put(ctx context.Context, name string, a App) {
	f.Mu.Lock()
	f.Want[name] = a
	f.Mu.Unlock()
	spec := map[string]any{"image": a.Image}
	if a.Port {
		spec["port"] = int64(8080)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "examples.wasmctl.dev/v1", "kind": "WebApp", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	apps := f.Client.Resource(WebApps).Namespace(f.Ns)
	for ctx.Err() == nil {
		var err error
		if a == (App{}) {
			err = apps.Delete(ctx, name, metav1.DeleteOptions{})
		} else {
			_, err = apps.Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "user", Force: true})
		}
		if err == nil || a == (App{}) && apierrors.IsNotFound(err) {
			f.puts.Add(1)
			return
		}
		Pause(ctx, 100*time.Millisecond)
	}
	f.T.Errorf("%s was not changed: %v", name, ctx.Err())
}

// Churn changes n Apps in each of several rounds, also while the API server is down,
// until wait returns. The changes of one App come one after the other.
func (f *Fleet) Churn(ctx context.Context, n, rounds int) (wait func()) {
	const writers = 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				for i := w; i < n; i += writers {
					f.Put(ctx, fmt.Sprint("w", i), App{Image: fmt.Sprintf("i:%d-%d-%d", i, r, f.puts.Load()), Port: (i+r)%2 == 0})
				}
			}
		})
	}
	return wg.Wait
}

// AwaitPuts waits until the API server has accepted n changes in all.
func (f *Fleet) AwaitPuts(n int64) {
	f.T.Helper()
	enginetest.Until(f.T, fmt.Sprintf("%d changes taken", n), func() bool { return f.puts.Load() >= n })
}

// Confirm waits until each App has the children that its last state asks for,
// and no others: nothing was lost.
func (f *Fleet) Confirm() {
	f.T.Helper()
	ctx, cancel := context.WithTimeout(f.T.Context(), SettleLimit)
	defer cancel()
	for {
		err := f.Differs(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			f.T.Fatalf("not as wanted: %v", err)
		}
		Pause(ctx, 500*time.Millisecond)
	}
}

// Differs returns an error that names the Apps whose children are not as wanted.
func (f *Fleet) Differs(ctx context.Context) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	uids, err := f.list(ctx, WebApps, func(u *unstructured.Unstructured) string { return string(u.GetUID()) })
	if err != nil {
		return err
	}
	images, err := f.list(ctx, Deployments, func(u *unstructured.Unstructured) string {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		return fmt.Sprint(containers[0].(map[string]any)["image"], " of ", controllerUID(u))
	})
	if err != nil {
		return err
	}
	ports, err := f.list(ctx, Services, controllerUID)
	if err != nil {
		return err
	}
	var errs []error
	for name, a := range f.Want {
		image, port := "", ""
		if a != (App{}) {
			image = a.Image + " of " + uids[name]
		}
		if a.Port {
			port = uids[name]
		}
		if images[name] != image || ports[name] != port {
			errs = append(errs, fmt.Errorf("%s: deployment %q, service %q, want %q and %q", name, images[name], ports[name], image, port))
		}
	}
	return errors.Join(errs...)
}

func controllerUID(u *unstructured.Unstructured) string {
	if c := metav1.GetControllerOf(u); c != nil {
		return string(c.UID)
	}
	return "nobody"
}

// list returns a word for each object of a resource, by its name.
func (f *Fleet) list(ctx context.Context, gvr schema.GroupVersionResource, word func(*unstructured.Unstructured) string) (map[string]string, error) {
	list, err := f.Client.Resource(gvr).Namespace(f.Ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	words := map[string]string{}
	for i := range list.Items {
		words[list.Items[i].GetName()] = word(&list.Items[i])
	}
	return words, nil
}

// Patch applies a merge patch to an object of a Fleet.
func Patch(f *Fleet, gvr schema.GroupVersionResource, name, json string) {
	f.T.Helper()
	if _, err := f.Client.Resource(gvr).Namespace(f.Ns).Patch(f.T.Context(), name, types.MergePatchType, []byte(json), metav1.PatchOptions{}); err != nil {
		f.T.Fatal(err)
	}
}
