// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// BenchmarkTranscode_4KiB measures the cost of an answer in addition to the request itself.
func BenchmarkTranscode_4KiB(b *testing.B) {
	env := make([]any, 20)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprintf("VARIABLE_%d", i), "value": strings.Repeat("x", 100), "n": i}
	}
	js, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry/web:1", "env": env}}, "filler": strings.Repeat("y", 700)},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(js)))
	b.ReportAllocs()
	for b.Loop() {
		if got := fromJSON(nil, js); got.Status != abi.StatusOK {
			b.Fatal(got.Status)
		}
	}
}

// BenchmarkGet compares an api_get on a real API server with the dynamic client
// on its own, which stops at the decoded map.
func BenchmarkGet(b *testing.B) {
	c := devclustertest.Shared(b)
	ns := devclustertest.Namespace(b, c)
	client := newClient(b, c.RESTConfig())
	log := slog.New(slog.DiscardHandler)
	account := &purse{}
	account.limit.Store(1 << 40)
	api, err := New(Config{Client: client, Resolver: kinds.NewResolver(client, log), Account: account, Controller: "bench", Policy: everything(), Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": ns, "name": "a"}
	object := with(ref, "object", map[string]any{"data": map[string]any{"text": strings.Repeat("x", 1000)}})
	if got := api.Call(b.Context(), abi.OpAPICreate, msg(b, object)); got.Status != abi.StatusOK {
		b.Fatal(got.Status)
	}
	b.Run("call", func(b *testing.B) {
		req := msg(b, ref)
		b.ReportAllocs()
		for b.Loop() {
			if got := api.Call(b.Context(), abi.OpAPIGet, req); got.Status != abi.StatusOK {
				b.Fatal(got.Status)
			}
		}
	})
	b.Run("dynamic", func(b *testing.B) {
		native := dynamic.NewForConfigOrDie(client.config).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := native.Namespace(ns).Get(b.Context(), "a", metav1.GetOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCall_Denied is the way of a request up to the policy.
func BenchmarkCall_Denied(b *testing.B) {
	api := offlineAPI(b, nil)
	req := msg(b, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}, "data": map[string]any{"k": "v"},
	}, "force": true})
	b.ReportAllocs()
	for b.Loop() {
		if got := api.Call(b.Context(), abi.OpAPIApply, req); got.Status != abi.StatusDenied {
			b.Fatal(got.Status)
		}
	}
}

// BenchmarkDeclare_Steady is a run whose ten children and status are as they
// were left: nothing is sent.
func BenchmarkDeclare_Steady(b *testing.B) {
	api, owner, r := benchDeclare(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := api.Declare(b.Context(), owner, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeclare_Sent is the same run if the host has no memory of them: eleven requests that
// change nothing.
func BenchmarkDeclare_Sent(b *testing.B) {
	api, owner, r := benchDeclare(b)
	b.ReportAllocs()
	for b.Loop() {
		api.cfg.Children = nil
		api.memory = memory{}
		if err := api.Declare(b.Context(), owner, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeclare_Proved is the same run if the cache has the children: nothing is sent.
func BenchmarkDeclare_Proved(b *testing.B) {
	api, owner, r := benchDeclare(b)
	r.Status = nil
	api.cfg.Cache = &frozenCache{from: &liveCache{t: b, admin: newClient(b, devclustertest.Admin(b))}, states: map[abi.Key]abi.Stored{}}
	b.ReportAllocs()
	for b.Loop() {
		api.memory = memory{}
		if err := api.Declare(b.Context(), owner, r); err != nil {
			b.Fatal(err)
		}
	}
}

// frozenCache asks another one once for each object.
type frozenCache struct {
	packedCache

	from   Cache
	states map[abi.Key]abi.Stored
}

// Stored implements Cache.
func (c *frozenCache) Stored(gvr schema.GroupVersionResource, key abi.Key) (abi.Stored, bool) {
	if c.states[key] == nil {
		c.states[key], _ = c.from.Stored(gvr, key)
	}
	return c.states[key], true
}

// benchDeclare returns a declared result that has been carried out.
func benchDeclare(b *testing.B) (*API, Owner, *abi.Declared) {
	b.Helper()
	c := devclustertest.Shared(b)
	devclustertest.Apply(b, c, []byte(sprocketCRD))
	ns := devclustertest.Namespace(b, c)
	client := newClient(b, c.RESTConfig())
	log := slog.New(slog.DiscardHandler)
	api, err := New(Config{Client: client, Resolver: kinds.NewResolver(client, log), Controller: "bench", Policy: everything(), Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	kind, err := api.cfg.Resolver.Resolve(b.Context(), "sprockets.kubeapi.wasmctl.dev")
	if err != nil {
		b.Fatal(err)
	}
	ref := map[string]any{"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "namespace": ns, "name": "o"}
	owner := Owner{kind, api.Call(b.Context(), abi.OpAPICreate, msg(b, with(ref, "object", map[string]any{"spec": map[string]any{"size": 1}}))).Body}
	r := &abi.Declared{Prune: true, Status: msg(b, map[string]any{"size": 10})}
	for i := range 10 {
		r.Apply = append(r.Apply, msg(b, configMap(fmt.Sprint("c", i), strings.Repeat("x", 1000))))
	}
	cached := &children{t: b, admin: client, gvrs: []schema.GroupVersionResource{configMaps}, ns: ns}
	api.cfg.Children = cached
	if err := api.Declare(b.Context(), owner, r); err != nil {
		b.Fatal(err)
	}
	cached.refresh()
	owner.Object = api.Call(b.Context(), abi.OpAPIGet, msg(b, ref)).Body
	return api, owner, r
}
