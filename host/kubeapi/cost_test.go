// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// cost is the cost of a call: allocated bytes, and time.
func cost(f func()) (allocated uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := time.Now()
	f()
	took = time.Since(started)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

// TestFields_CheckCostsByTheSizeOfTheWrite: the check of a wide map at a great
// depth, all of it denied, takes little more memory than the request does.
func TestFields_CheckCostsByTheSizeOfTheWrite(t *testing.T) {
	wide := map[string]any{}
	for i := range 50_000 {
		wide[fmt.Sprint("k", i)] = int64(1)
	}
	for range 110 {
		wide = map[string]any{"a": wide}
	}
	api := offlineAPI(t, NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"*"}, Fields: []string{"data.b"}}}))
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}, "data": wide}
	patch := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "patchType": "merge", "patch": map[string]any{"data": wide}}
	for op, req := range map[abi.Op]map[string]any{abi.OpAPICreate: {"object": ref}, abi.OpAPIApply: {"object": ref}, abi.OpAPIPatch: patch} {
		b := msg(t, req)
		var got abi.Response
		allocated, _ := cost(func() { got = api.Call(t.Context(), op, b) })
		if got.Status != abi.StatusDenied || allocated > 64<<20 {
			t.Errorf("%s of %d bytes: %v, %d MiB", op, len(b), got.Status, allocated>>20)
		}
	}
}

// emptyMaps returns a map with a list of n empty maps, in msgpack.
func emptyMaps(n int) []byte {
	head := []byte{0x81, 0xa1, 'a', 0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(head, bytes.Repeat([]byte{0x80}, n)...)
}

// denials are writes of a body that the policy denies.
func denials(t *testing.T, body []byte) map[abi.Op][]byte {
	t.Helper()
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}
	write := func(key string, extra ...any) []byte {
		b := msg(t, with(ref, append(extra, key, "BODY")...))
		return bytes.Replace(b, []byte("\xa4BODY"), body, 1)
	}
	return map[abi.Op][]byte{
		abi.OpAPICreate: write("object"), abi.OpAPIUpdate: write("object"), abi.OpAPIApply: write("object"), abi.OpAPIPatch: write("patch", "patchType", "merge"),
	}
}

// TestCall_ADeniedRequestIsNotDecoded: the policy is asked before a body becomes
// maps of Go.
func TestCall_ADeniedRequestIsNotDecoded(t *testing.T) {
	api := offlineAPI(t, nil)
	for op, b := range denials(t, emptyMaps(maxValues-100)) {
		var got abi.Response
		allocated, _ := cost(func() { got = api.Call(t.Context(), op, b) })
		if got.Status != abi.StatusDenied || allocated > 2<<20 {
			t.Errorf("%s of %d bytes: %v, %d KiB", op, len(b), got.Status, allocated>>10)
		}
	}
}

// TestCall_ValuesAtTheirBound: a request that would take much memory once it is
// decoded is refused, with or without the right.
func TestCall_ValuesAtTheirBound(t *testing.T) {
	for op, b := range denials(t, emptyMaps(abi.MaxBytes-200)) {
		var got abi.Response
		allocated, _ := cost(func() { got = offlineAPI(t, everything()).Call(t.Context(), op, b) })
		if got.Status != abi.StatusTooLarge || !strings.Contains(string(got.Body), "the limit is 200000") || allocated > 2<<20 {
			t.Errorf("%s: %v %s, %d KiB", op, got.Status, got.Body, allocated>>10)
		}
	}
	api := offlineAPI(t, everything())
	owner := Owner{Kind: resolve(t, api.cfg.Resolver, "configmaps"), Object: msg(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "7"},
	})}
	child := msg(t, map[string]any{"apiVersion": "v1", "data": "BODY", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}})
	for what, d := range map[string]*abi.Declared{
		"child":  {Apply: [][]byte{bytes.Replace(child, []byte("\xa4BODY"), emptyMaps(3<<20), 1)}},
		"status": {Status: emptyMaps(3 << 20)},
	} {
		var err error
		allocated, _ := cost(func() { err = api.Declare(t.Context(), owner, d) })
		if failed, ok := errors.AsType[*abi.ResultError](err); !ok || failed.Class != abi.ErrorPermanent || !strings.Contains(err.Error(), "the limit is 200000") || allocated > 2<<20 {
			t.Errorf("%s: %v, %d KiB", what, err, allocated>>10)
		}
	}
}

// TestCall_TextsAtTheirBounds: each text of a request is bounded before it is
// parsed.
func TestCall_TextsAtTheirBounds(t *testing.T) {
	api := offlineAPI(t, everything())
	api.cfg.Cache = &packedCache{}
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	long := strings.Repeat("a,", abi.MaxBytes/2-200) + "b"
	for _, tt := range []struct {
		op   abi.Op
		req  map[string]any
		want string
	}{
		{abi.OpCacheList, with(list, "labelSelector", long), "the limit is 16384"},
		{abi.OpAPIList, with(list, "labelSelector", long), "the limit is 16384"},
		{abi.OpAPIList, with(list, "fieldSelector", long), "the limit is 16384"},
		{abi.OpAPIList, with(list, "continue", long), "the limit is 16384"},
		{abi.OpCacheList, with(list, "labelSelector", long[:2*maxRequirements+1]), "have 101 requirements, the limit is 100"},
		{abi.OpAPIGet, with(list, "name", long), "name: has"},
		{abi.OpAPIGet, with(list, "name", "x", "namespace", long), "namespace: has"},
		{abi.OpAPIGet, with(list, "kind", long, "name", "x"), "kind: has"},
		{abi.OpAPIGet, with(list, "apiVersion", long, "name", "x"), "apiVersion: has"},
		{abi.OpAPICreate, map[string]any{"object": with(list, "metadata", map[string]any{"name": long})}, "object.metadata.name: has"},
		{abi.OpAPICreate, map[string]any{"object": with(list, "kind", long)}, "object.kind: has"},
	} {
		b := msg(t, tt.req)
		var got abi.Response
		allocated, took := cost(func() { got = api.Call(t.Context(), tt.op, b) })
		if got.Status != abi.StatusBadRequest || !strings.Contains(string(got.Body), tt.want) || allocated > 5*abi.MaxBytes || len(got.Body) > 1000 {
			t.Errorf("%s of %d bytes: %v %.300s, %d KiB, %v", tt.op, len(b), got.Status, got.Body, allocated>>10, took)
		}
	}
	if got := api.Call(t.Context(), abi.OpCacheList, msg(t, with(list, "labelSelector", long[:2*maxRequirements-1]))); got.Status != abi.StatusOK {
		t.Errorf("100 requirements: %v %s", got.Status, got.Body)
	}
}

// endless is a cache with so many objects that a search never ends.
type endless struct {
	packedCache

	seen  int
	cease func()
}

// List implements Cache.
func (c *endless) List(
	_ schema.GroupVersionResource, _, _ string, _ *abi.Index, matches func(l labels.Labels, object []byte) bool, _ abi.Key, _ int,
) ([][]byte, bool, abi.Key, error) {
	for c.seen = 1; c.seen < 1_000_000; c.seen++ {
		if matches(labels.Set{"a": "x"}, nil) {
			return nil, false, abi.Key{}, nil
		}
		if c.seen == 1000 {
			c.cease()
		}
	}
	return nil, false, abi.Key{}, nil
}

// TestCacheList_EndsWithItsRun: a search that finds nothing is over with its call.
func TestCacheList_EndsWithItsRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	api := offlineAPI(t, everything())
	api.cfg.Cache = &endless{cease: cancel}
	got := api.Call(ctx, abi.OpCacheList, msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "a=y"}))
	if got.Status != abi.StatusCancelled {
		t.Errorf("%v %s", got.Status, got.Body)
	}
}
