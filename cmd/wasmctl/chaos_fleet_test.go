package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

var (
	webApps                   = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "webapps"}
	deployments               = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	services                  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// settleLimit bounds the wait for all objects to be what they are to be. A run
// that failed in an outage is retried by back-off.
const settleLimit = 4 * time.Minute

// builtGuests is where tests keep what they have built, for later ones.
var builtGuests = filepath.Join(os.TempDir(), "wasmctl-guests")

// exampleModules are the examples that tests have built, by name.
var exampleModules sync.Map

// exampleWasm builds an example with the standard toolchain, once for all tests,
// and returns its file.
func exampleWasm(t *testing.T, name string) string {
	t.Helper()
	build, _ := exampleModules.LoadOrStore(name, sync.OnceValues(func() (string, error) { return buildExample(name) }))
	path, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildExample leaves one file, whatever else builds it at the same time, and
// however often.
func buildExample(name string) (path string, err error) {
	if err := os.MkdirAll(builtGuests, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(builtGuests, name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out, path := filepath.Join(dir, "module"), filepath.Join(builtGuests, name+".wasm")
	if _, err := project.Build(context.Background(), filepath.Join("../../examples", name), project.Options{Output: out}); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return path, os.Rename(out, path)
}

// fleet is the WebApps of a namespace, and what each is to be. The module
// webapp declares a Deployment for each, and a Service for those with a port.
type fleet struct {
	t       *testing.T
	cluster *devcluster.Cluster
	client  dynamic.Interface // an admin's, straight to the API server
	ns      string
	puts    atomic.Int64 // how many changes the API server has taken

	mu   sync.Mutex
	want map[string]app // guarded by mu
}

// app is what a WebApp is to be. The zero app is none.
type app struct {
	image string
	port  bool
}

func newFleet(t *testing.T, cluster *devcluster.Cluster) *fleet {
	t.Helper()
	devclustertest.ApplyFile(t, cluster, "../../examples/webapp/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{t: t, cluster: cluster, client: client, ns: devclustertest.Namespace(t, cluster), want: map[string]app{}}
}

// start starts wasmctl with the module webapp for the namespace.
func (f *fleet) start(args ...string) *child {
	f.t.Helper()
	return f.startEnv(nil, append([]string{"--kubeconfig", f.cluster.Kubeconfig()}, args...)...)
}

func (f *fleet) startEnv(env []string, args ...string) *child {
	f.t.Helper()
	return startWasmctlEnv(f.t, env, append([]string{exampleWasm(f.t, "webapp"), "-n", f.ns}, args...)...)
}

// put makes an app what it is to be, and tries until the API server has taken it.
func (f *fleet) put(ctx context.Context, name string, a app) {
	f.mu.Lock()
	f.want[name] = a
	f.mu.Unlock()
	spec := map[string]any{"image": a.image}
	if a.port {
		spec["port"] = int64(8080)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "examples.wasmctl.dev/v1", "kind": "WebApp", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	apps := f.client.Resource(webApps).Namespace(f.ns)
	for ctx.Err() == nil {
		var err error
		if a == (app{}) {
			err = apps.Delete(ctx, name, metav1.DeleteOptions{})
		} else {
			_, err = apps.Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "user", Force: true})
		}
		if err == nil || a == (app{}) && apierrors.IsNotFound(err) {
			f.puts.Add(1)
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
	f.t.Errorf("%s was not changed: %v", name, ctx.Err())
}

// churn changes n apps in each of so many rounds, whether or not there is an API
// server, until wait returns. The changes of one app come one after the other.
func (f *fleet) churn(ctx context.Context, n, rounds int) (wait func()) {
	const writers = 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				for i := w; i < n; i += writers {
					f.put(ctx, fmt.Sprint("w", i), app{image: fmt.Sprintf("i:%d-%d-%d", i, r, f.puts.Load()), port: (i+r)%2 == 0})
				}
			}
		})
	}
	return wg.Wait
}

// awaitPuts waits until the API server has taken n changes in all.
func (f *fleet) awaitPuts(n int64) {
	f.t.Helper()
	enginetest.Until(f.t, fmt.Sprintf("%d changes taken", n), func() bool { return f.puts.Load() >= n })
}

// confirm waits until each app has the children that its last state asks for,
// and no others: nothing was lost.
func (f *fleet) confirm() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), settleLimit)
	defer cancel()
	for {
		err := f.differs(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			f.t.Fatalf("not as it is to be: %v", err)
		}
		pause(ctx, 500*time.Millisecond)
	}
}

// differs says what is not as it is to be.
func (f *fleet) differs(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	uids, err := f.list(ctx, webApps, func(u *unstructured.Unstructured) string { return string(u.GetUID()) })
	if err != nil {
		return err
	}
	images, err := f.list(ctx, deployments, func(u *unstructured.Unstructured) string {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		return fmt.Sprint(containers[0].(map[string]any)["image"], " of ", controllerUID(u))
	})
	if err != nil {
		return err
	}
	ports, err := f.list(ctx, services, controllerUID)
	if err != nil {
		return err
	}
	var errs []error
	for name, a := range f.want {
		image, port := "", ""
		if a != (app{}) {
			image = a.image + " of " + uids[name]
		}
		if a.port {
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

// list returns a word about each object of a resource, by its name.
func (f *fleet) list(ctx context.Context, gvr schema.GroupVersionResource, word func(*unstructured.Unstructured) string) (map[string]string, error) {
	list, err := f.client.Resource(gvr).Namespace(f.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	words := map[string]string{}
	for i := range list.Items {
		words[list.Items[i].GetName()] = word(&list.Items[i])
	}
	return words, nil
}

// steer runs one of the commands that steer a running process, and returns what
// it prints.
func steer(t *testing.T, command, socket string, args ...string) string {
	t.Helper()
	args = append([]string{command, "--socket", socket}, args...)
	out, err := exec.Command("wasmctl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("wasmctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// newSocket returns a path for a socket; t.TempDir's can be too long for one.
func newSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wasmctl-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// whoAmI asks the API server whom it takes a client for.
func whoAmI(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}
