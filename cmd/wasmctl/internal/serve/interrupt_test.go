// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// served is a Server on an API server in memory, whose registries never answer.
type served struct {
	*Server
	t    *testing.T
	api  *memapi.Server
	kind memapi.Kind // Reconciler
}

// serving runs a Server in virtual time.
func serving(t *testing.T, test func(s *served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &served{t: t, kind: memapi.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: v1alpha1.KindNamespaced},
			Resource:         v1alpha1.GVR(v1alpha1.KindNamespaced).Resource, Namespaced: true, Status: true,
		}}
		s.api = memapi.New(memapi.Config{Kinds: []memapi.Kind{s.kind}})
		cluster := &rest.Config{Host: "http://memory", Transport: s.api}
		over := make(chan struct{})
		defer close(over)
		silent := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-over
			return nil, net.ErrClosed
		}}
		log := slog.New(slog.DiscardHandler)
		var err error
		s.Server, err = New(Config{
			Cluster: cluster, Registry: func() oci.Options { return oci.Options{Transport: silent} }, Namespaces: []string{"bad", "good"}, Log: log,
			Bounds: v1alpha1.Bounds{Limits: map[abi.LimitName]int64{abi.LimitMemory: 1 << 20, abi.LimitTimeout: int64(time.Second)}, Concurrency: 4},
		})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := wasmctl.New(cluster, wasmctl.Options{Logger: log, Notes: s.Server})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- rt.Run(ctx) }()
		if err := s.Start(ctx, rt); err != nil {
			t.Fatal(err)
		}
		test(s)
		start := time.Now()
		stop()
		if err := <-ended; err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("the stop took %v: %v", time.Since(start), err)
		}
	})
}

// create creates a Reconciler.
func (s *served) create(namespace, name string, module map[string]any) {
	s.t.Helper()
	err := s.api.Put(map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": v1alpha1.KindNamespaced,
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"module": module},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// reason returns the reason of Ready, or "" if the Reconciler has none, and "gone" if it is gone.
func (s *served) reason(namespace, name string) string {
	o, err := s.api.Get(s.kind, abi.Key{Namespace: namespace, Name: name})
	if err != nil {
		return "gone"
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == v1alpha1.Ready {
			return c["reason"].(string)
		}
	}
	return ""
}

// within waits until Reconcilers of the namespace bad have a reason, and fails if it takes more than two seconds.
func (s *served) within(what, reason string, names ...string) {
	s.t.Helper()
	start := time.Now()
	for _, name := range names {
		enginetest.Until(s.t, name+" is "+reason, func() bool { return s.reason("bad", name) == reason })
	}
	if took := time.Since(start); took > 2*time.Second {
		s.t.Errorf("%s took %v", what, took)
	}
}

// A hundred Reconcilers of one tenant wait for registries that never answer. Those of another tenant are looked at meanwhile,
// and to suspend, to change or to delete one of the hundred does not wait for its registry, nor does a stop.
func TestServer_SlowRegistriesDelayNothingElse(t *testing.T) {
	serving(t, func(s *served) {
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("r%d", i))
			s.create("bad", names[i], map[string]any{"image": "slow.example/m:1"})
		}
		enginetest.Until(t, "the tenant has all of its fetches", func() bool { return s.turns.Taken() == maxFetchesEach })
		start := time.Now()
		s.create("good", "other", map[string]any{"configMapKeyRef": map[string]any{"name": "absent", "key": "m"}})
		enginetest.Until(t, "another tenant's is looked at", func() bool { return s.reason("good", "other") == "ConfigMapFailed" })
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("another tenant waited for %v", took)
		}
		for _, name := range names[:50] {
			s.change(name, func(spec map[string]any) { spec["suspend"] = true })
		}
		s.within("suspending", "Suspended", names[:50]...)
		for _, name := range names[25:75] { // 25 of them are suspended
			if _, err := s.api.Delete(s.kind, abi.Key{Namespace: "bad", Name: name}, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.within("deletion", "gone", names[25:75]...)
		for _, name := range names[75:] {
			s.change(name, func(spec map[string]any) {
				spec["module"] = map[string]any{"configMapKeyRef": map[string]any{"name": "absent", "key": "m"}}
			})
		}
		s.within("another module", "ConfigMapFailed", names[75:]...)
		s.create("bad", "last", map[string]any{"image": "slow.example/m:1"})
		enginetest.Until(t, "a fetch is under way", func() bool { return s.turns.Taken() == 1 })
	})
}

// change changes the spec of a Reconciler of the namespace bad.
func (s *served) change(name string, change func(spec map[string]any)) {
	s.t.Helper()
	_, err := s.api.Change(s.kind, abi.Key{Namespace: "bad", Name: name}, false, func(o *unstructured.Unstructured) error {
		change(o.Object["spec"].(map[string]any))
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
