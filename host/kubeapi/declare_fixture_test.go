// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// children is a cache with the API server's state at the last call of refresh.
type children struct {
	t     testing.TB
	admin *Client
	gvrs  []schema.GroupVersionResource
	ns    string

	mu      sync.Mutex
	objects map[schema.GroupVersionResource][]metav1.PartialObjectMetadata // guarded by mu
}

// refresh is the watch's next event.
func (c *children) refresh() {
	c.t.Helper()
	objects := map[schema.GroupVersionResource][]metav1.PartialObjectMetadata{}
	for _, gvr := range c.gvrs {
		r := request{kind: kinds.Kind{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource}, key: abi.Key{Namespace: c.ns}}
		js, err := c.admin.rest.Get().AbsPath(r.path()...).Do(c.t.Context()).Raw()
		if err != nil {
			c.t.Fatal(err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(js, &list); err != nil {
			c.t.Fatal(err)
		}
		objects[gvr] = list.Items
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = objects
}

// Children implements Children.
func (c *children) Children(_ abi.Key, uid string, yield func(schema.GroupVersionResource, abi.Key, string, string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvr, list := range c.objects {
		for i := range list {
			o := &list[i]
			controller := metav1.GetControllerOf(o)
			if controller == nil || string(controller.UID) != uid {
				continue
			}
			if !yield(gvr, abi.Key{Namespace: o.Namespace, Name: o.Name}, string(o.UID), o.ResourceVersion) {
				return
			}
		}
	}
}

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// declarer is a session of one owner, whose requests are counted.
type declarer struct {
	*session

	cache *children
	owner Owner
	sent  func() []string // since it was last asked: "PATCH /api/v1/..."
}

// recorded returns a config whose requests, but for discovery, are recorded.
func recorded(config *rest.Config) (*rest.Config, func() []string) {
	var mu sync.Mutex
	var lines []string
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Count(r.URL.Path, "/") > 3 {
				mu.Lock()
				lines = append(lines, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
				mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { lines = nil }()
		return lines
	}
}

func newDeclarer(t *testing.T) *declarer {
	t.Helper()
	c := devclustertest.Shared(t)
	devclustertest.Apply(t, c, []byte(sprocketCRD))
	ns := devclustertest.Namespace(t, c)
	return declarerIn(t, c.RESTConfig(), ns)
}

func declarerIn(t *testing.T, rc *rest.Config, ns string) *declarer {
	t.Helper()
	admin, err := NewClient(devclustertest.Admin(t))
	if err != nil {
		t.Fatal(err)
	}
	config, sent := recorded(rc)
	d := &declarer{session: newSession(t, config, ns), sent: sent}
	d.cache = &children{t: t, admin: admin, gvrs: []schema.GroupVersionResource{configMaps, deployments}, ns: ns}
	d.cfg.Children = d.cache
	d.owner = d.newOwner("owner")
	return d
}

// newOwner makes a Sprocket.
func (d *declarer) newOwner(name string) Owner {
	d.t.Helper()
	made := d.ok(abi.OpAPICreate, map[string]any{"object": d.sprocket(name, "spec", map[string]any{"size": 1})})
	kind, err := d.cfg.Resolver.Resolve(d.t.Context(), "sprockets.kubeapi.wasmctl.dev")
	if err != nil {
		d.t.Fatal(err)
	}
	d.sent()
	return Owner{Kind: kind, Object: msg(d.t, made)}
}

// reference creates another Sprocket as an owner. A garbage collector runs with the API server, and
// deletes the objects of missing owners.
func (d *declarer) reference(name string) map[string]any {
	d.t.Helper()
	o, err := d.newOwner(name).read()
	if err != nil {
		d.t.Fatal(err)
	}
	return o.reference()
}

// renew reads the owner again, as the next run would see it.
func (d *declarer) renew() {
	d.t.Helper()
	d.owner.Object = msg(d.t, d.ok(abi.OpAPIGet, d.sprocketRef("owner")))
	d.sent()
}

// result is a declared result.
func (d *declarer) result(children ...map[string]any) *abi.Declared {
	r := &abi.Declared{}
	for _, c := range children {
		r.Apply = append(r.Apply, msg(d.t, c))
	}
	return r
}

func (d *declarer) uid() string {
	o, err := d.owner.read()
	if err != nil {
		d.t.Fatal(err)
	}
	return o.uid
}

// declare carries out a result that must succeed, lets the cache catch up, and returns the sent
// requests.
func (d *declarer) declare(r *abi.Declared) []string {
	d.t.Helper()
	d.sent()
	if err := d.Declare(d.t.Context(), d.owner, r); err != nil {
		d.t.Fatal(err)
	}
	sent := d.sent()
	d.cache.refresh()
	return sent
}

// refuse is declare for a result that must fail. It returns the error and the sent requests.
func (d *declarer) refuse(class abi.ErrorClass, reason, text string, r *abi.Declared) (WriteError, []string) {
	d.t.Helper()
	d.sent()
	err := d.Declare(d.t.Context(), d.owner, r)
	e := failsAs(d.t, err, class, reason, text)
	sent := d.sent()
	d.cache.refresh()
	return e, sent
}

// failsAs checks a runtime's view of an error.
func failsAs(t testing.TB, err error, class abi.ErrorClass, reason, text string) WriteError {
	t.Helper()
	var result *abi.ResultError
	var e *WriteError
	if !errors.As(err, &result) || !errors.As(err, &e) {
		t.Fatalf("error: %v, want a %s", err, reason)
	}
	if result.Class != class || result.Reason != reason || !strings.Contains(result.Message, text) || result.Message != err.Error() {
		t.Fatalf("%s, %s: %s\nwant %s, %s: ...%s...", result.Class, result.Reason, result.Message, class, reason, text)
	}
	return *e
}

// names lists the ConfigMaps of the session's namespace, but for those that
// every namespace has.
func (d *declarer) names() string {
	var names []string
	for _, o := range d.ok(abi.OpAPIList, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": d.ns})["items"].([]any) {
		if name := fmt.Sprint(at(o, "metadata", "name")); name != "kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// configMap is a ConfigMap without a namespace.
func configMap(name, value string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"k": value}}
}

// inMeta returns a copy of an object with more keys in its metadata.
func inMeta(o map[string]any, kv ...any) map[string]any {
	return with(o, "metadata", with(o["metadata"].(map[string]any), kv...))
}
