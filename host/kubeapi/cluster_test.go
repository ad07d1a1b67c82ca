// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// sharedSession returns a session with all rights in a namespace of its own.
func sharedSession(t *testing.T) *session {
	t.Helper()
	c := devclustertest.Shared(t)
	devclustertest.Apply(t, c, []byte(sprocketCRD))
	return newSession(t, c.RESTConfig(), devclustertest.Namespace(t, c))
}

// TestCall_RBACOfTheServerIsAStatus: the API server can still refuse what our policy allows.
func TestCall_RBACOfTheServerIsAStatus(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	limited := devclustertest.Limited(t, c, ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	s := newSession(t, limited, ns)
	s.fails(404, "not found", abi.OpAPIGet, s.ref("none"))
	denied := s.fails(403, "cannot create resource", abi.OpAPICreate, map[string]any{"object": s.cm("a", nil)})
	if denied["reason"] != "Forbidden" {
		t.Errorf("reason: %v", denied["reason"])
	}
}

func TestCheckWatch_NamesTheMissingRules(t *testing.T) {
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	limited := devclustertest.Limited(t, c, ns,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}})
	client := newClient(t, limited)
	r := newResolver(client)
	kind := func(name string) kinds.Kind { return resolve(t, r, name) }
	in := []string{ns}
	missing := client.CheckWatch(t.Context(), WatchedKind{Kind: kind("cm"), Namespaces: in}, WatchedKind{Kind: kind("deploy"), Namespaces: in}, WatchedKind{Kind: kind("secrets")},
		WatchedKind{Kind: kind("nodes"), Namespaces: in}, WatchedKind{Kind: kind("secrets")})
	want := fmt.Sprintf(`# in a Role in namespace %s
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["watch"]
# in a ClusterRole
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["list", "watch"]
# in a ClusterRole
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["list", "watch"]
`, ns)
	if got := RBACRules(missing); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := missing[0].String(); got != "watch deployments.apps in namespace "+ns {
		t.Error(got)
	}
	if missing := newClient(t, c.RESTConfig()).CheckWatch(t.Context(), WatchedKind{Kind: kind("cm")}); RBACRules(missing) != "" {
		t.Errorf("the administrator lacks %v", missing)
	}
}

func TestResolve_OnTheRealServer(t *testing.T) {
	c := devclustertest.Shared(t)
	devclustertest.Apply(t, c, []byte(sprocketCRD))
	r := newResolver(newClient(t, c.RESTConfig()))
	for name, want := range map[string]string{
		"cm": "v1/configmaps", "ConfigMap": "v1/configmaps", "v1/ConfigMap": "v1/configmaps", "po": "v1/pods", "ns": "v1/namespaces",
		"deploy": "apps/v1/deployments", "deployments.apps": "apps/v1/deployments", "deployments.v1.apps": "apps/v1/deployments",
		"Deployment.v1.apps": "apps/v1/deployments", "apps/v1/deployments": "apps/v1/deployments", "events": "v1/events",
		"events.events.k8s.io": "events.k8s.io/v1/events", "sc.storage": "storage.k8s.io/v1/storageclasses", "hpa": "autoscaling/v2/horizontalpodautoscalers",
		"hpa.v1.autoscaling": "autoscaling/v1/horizontalpodautoscalers", "crd": "apiextensions.k8s.io/v1/customresourcedefinitions",
		"spr": "kubeapi.wasmctl.dev/v1/sprockets", "Sprocket": "kubeapi.wasmctl.dev/v1/sprockets", "sprockets.kubeapi": "kubeapi.wasmctl.dev/v1/sprockets",
		"kubeapi.wasmctl.dev/v1/Sprocket": "kubeapi.wasmctl.dev/v1/sprockets", "sprockets.v1.kubeapi.wasmctl.dev": "kubeapi.wasmctl.dev/v1/sprockets",
	} {
		if got, err := r.Resolve(t.Context(), name); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v, want %s", name, got, err, want)
		}
	}
	for name, near := range map[string]string{"deploymnets": "deployments.apps", "sprocketz.kubeapi.wasmctl.dev": "sprockets.kubeapi.wasmctl.dev"} {
		var unknown *kinds.UnknownError
		if _, err := r.Resolve(t.Context(), name); !errors.As(err, &unknown) || len(unknown.Near) == 0 || unknown.Near[0] != near {
			t.Errorf("%s: %v", name, err)
		}
	}
	cm, err := r.ResolveGVK(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil || !cm.Namespaced || !slices.Contains(cm.Verbs, "watch") {
		t.Errorf("%+v, %v", cm, err)
	}
	review, err := r.Resolve(t.Context(), "selfsubjectaccessreviews")
	if err != nil || review.Namespaced || slices.Contains(review.Verbs, "watch") {
		t.Errorf("%+v, %v", review, err)
	}
}

// counted returns a config whose requests are counted by path.
func counted(config *rest.Config) (*rest.Config, func(path string) int64) {
	var mu sync.Mutex
	seen := map[string]*atomic.Int64{}
	count := func(path string) *atomic.Int64 {
		mu.Lock()
		defer mu.Unlock()
		if seen[path] == nil {
			seen[path] = new(atomic.Int64)
		}
		return seen[path]
	}
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			count(r.URL.Path).Add(1)
			return next.RoundTrip(r)
		})
	})
	return c, func(path string) int64 { return count(path).Load() }
}

// TestResolve_NonsenseOfGuestsDoesNotFloodDiscovery hammers one API from many
// goroutines with kinds that are not there.
func TestResolve_NonsenseOfGuestsDoesNotFloodDiscovery(t *testing.T) {
	config, count := counted(devclustertest.Shared(t).RESTConfig())
	s := newSession(t, config, "default")
	start := time.Now()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				got := s.Call(t.Context(), abi.OpAPIGet, msg(t, map[string]any{"apiVersion": "v1", "kind": fmt.Sprintf("None%d%d", g, i), "namespace": "a", "name": "x", "colour": "red"}))
				if got.Status != 404 {
					t.Errorf("%v: %s", got.Status, got.Body)
				}
			}
		})
	}
	wg.Wait()
	if most := 1 + int64(time.Since(start)/(3*time.Second)); count("/apis") > most {
		t.Errorf("%d discoveries in %v, want at most %d", count("/apis"), time.Since(start), most)
	}
	if s.UnknownKeys() != 8*50 || strings.Count(s.log.String(), "key=colour") != 1 {
		t.Errorf("%d unknown keys, log:\n%s", s.UnknownKeys(), s.log)
	}
}

const gadgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.late.wasmctl.dev}
spec:
  group: late.wasmctl.dev
  scope: Cluster
  names: {kind: %[2]s, plural: %[1]s, singular: %[3]s, listKind: %[2]sList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestWait_TakesAKindThatArrivesLater(t *testing.T) {
	c := devclustertest.Shared(t)
	suffix := strings.ReplaceAll(devclustertest.Namespace(t, c), "-", "")
	plural, kind := "gadgets"+suffix, "Gadget"+suffix
	client := newClient(t, c.RESTConfig())
	r := newResolver(client)
	t.Cleanup(func() {
		path := "apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural + ".late.wasmctl.dev"
		if err := client.rest.Delete().AbsPath(path).Do(context.WithoutCancel(t.Context())).Error(); err != nil {
			t.Error(err)
		}
	})
	said := make(chan error, 10)
	type result struct {
		kind kinds.Kind
		err  error
	}
	found := make(chan result, 1)
	go func() {
		k, err := r.WaitGVK(t.Context(), schema.GroupVersionKind{Group: "late.wasmctl.dev", Kind: kind}, func(err error) { said <- err })
		found <- result{k, err}
	}()
	if err := <-said; !errors.Is(err, kinds.ErrUnknown) {
		t.Errorf("it waits because of %v", err)
	}
	devclustertest.Apply(t, c, fmt.Appendf(nil, gadgetCRD, plural, kind, "gadget"+suffix))
	got := <-found
	if got.err != nil || got.kind.Resource != plural || got.kind.Namespaced {
		t.Errorf("got %+v, %v", got.kind, got.err)
	}
	if len(said) > 0 {
		t.Errorf("said once more: %v", <-said)
	}
	if k, err := r.Wait(t.Context(), plural+".late.wasmctl.dev", nil); err != nil || k.Resource != plural {
		t.Errorf("a kind that is there: %v, %v", k, err)
	}
}

func TestWait_DoesNotWaitForWhatCannotArrive(t *testing.T) {
	r := newResolver(newClient(t, devclustertest.Shared(t).RESTConfig()))
	for name, want := range map[string]error{"deploymnets": kinds.ErrUnknown, "a/b/c/d": kinds.ErrBadName, "foos.apps": kinds.ErrUnknown} {
		if _, err := r.Wait(t.Context(), name, func(err error) { t.Errorf("%s: waits: %v", name, err) }); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Wait(ctx, "nones.never.example.com", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of the context: %v", err)
	}
}

const brokenAPIService = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.broken.wasmctl.dev}
spec:
  group: broken.wasmctl.dev
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: none, namespace: default}
`

// TestServerDown_IsUnavailableAndHeals uses a control plane of its own, since
// it kills it and breaks its discovery.
func TestServerDown_IsUnavailableAndHeals(t *testing.T) {
	c := devclustertest.Own(t)
	s := newSession(t, c.RESTConfig(), "default")
	s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("a", nil)})

	link := devclustertest.Proxy(t, c)
	slow := newSession(t, link.RESTConfig(), "default")
	slow.ok(abi.OpAPIGet, slow.ref("a"))
	link.Stall()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("the run's time is over"))
	defer cancel()
	got := slow.Call(ctx, abi.OpAPIGet, msg(t, slow.ref("a")))
	if body := statusBody(t, got); got.Status != abi.StatusCancelled || body["message"] != "the run's time is over" {
		t.Errorf("stalled until the deadline: %v: %v", got.Status, body)
	}
	link.Resume()

	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	s.fails(abi.StatusUnavailable, "retry later", abi.OpAPIGet, s.ref("a"))
	s.fails(abi.StatusUnavailable, "may have taken effect)", abi.OpAPIUpdate, map[string]any{"object": s.cm("a", nil)})
	fresh := newSession(t, c.RESTConfig(), "default")
	fresh.fails(abi.StatusUnavailable, "discovery", abi.OpAPIGet, s.ref("a"))
	said := make(chan error, 10)
	found := make(chan error, 1)
	go func() {
		_, err := fresh.cfg.Resolver.Wait(t.Context(), "cm", func(err error) { said <- err })
		found <- err
	}()
	if err := <-said; !errors.Is(err, kinds.ErrUnavailable) {
		t.Errorf("it waits because of %v", err)
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Errorf("after the restart: %v", err)
	}
	for _, s := range []*session{s, fresh} {
		if at(s.ok(abi.OpAPIGet, s.ref("a")), "metadata", "name") != "a" {
			t.Error("another object after the restart")
		}
	}
	testBrokenAPIService(t, s)
}

// testBrokenAPIService: an aggregated API that does not answer does not affect the kinds of others.
func testBrokenAPIService(t *testing.T, s *session) {
	body, err := yaml.YAMLToJSON([]byte(brokenAPIService))
	if err != nil {
		t.Fatal(err)
	}
	path := "apis/apiregistration.k8s.io/v1/apiservices"
	if err := s.cfg.Client.rest.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, _, err := s.cfg.Client.Discover(t.Context())
		if _, partly := discovery.GroupDiscoveryFailedErrorGroups(err); partly {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("discovery takes no notice of the broken API: %v", err)
		}
	}
	s = newSession(t, s.cfg.Client.config, "default")
	if _, err := s.cfg.Resolver.Resolve(t.Context(), "deploy"); err != nil {
		t.Error(err)
	}
	if n := strings.Count(s.log.String(), "an aggregated API does not answer"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, s.log)
	}
}

// TestCall_KindThatHasGoneIsForgotten deletes the definition of a kind that was
// known.
func TestCall_KindThatHasGoneIsForgotten(t *testing.T) {
	s := sharedSession(t)
	suffix := strings.ReplaceAll(s.ns, "-", "")
	plural, kind := "things"+suffix, "Thing"+suffix
	devclustertest.Apply(t, devclustertest.Shared(t), fmt.Appendf(nil, gadgetCRD, plural, kind, "thing"+suffix))
	gvk := schema.GroupVersionKind{Group: "late.wasmctl.dev", Version: "v1", Kind: kind}
	k, err := s.cfg.Resolver.WaitGVK(t.Context(), gvk, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Policy = NewModulePolicy(k, nil, nil)
	path := "apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural + ".late.wasmctl.dev"
	if err := s.cfg.Client.rest.Delete().AbsPath(path).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	req := map[string]any{"apiVersion": "late.wasmctl.dev/v1", "kind": kind, "name": "x"}
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, body := s.do(abi.OpAPIGet, req)
		if strings.Contains(fmt.Sprint(body["message"]), kinds.ErrUnknown.Error()) {
			return // the resolver has noticed
		}
		if body["reason"] != "NotFound" || time.Now().After(deadline) {
			t.Fatalf("answer: %v", body)
		}
	}
}
