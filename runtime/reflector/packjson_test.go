// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

var everyOptions = []reflector.Options{
	{},
	{ManagedFields: true},
	{Metadata: true},
	{Metadata: true, ManagedFields: true, APIVersion: "v1", Kind: "Pod"},
	{APIVersion: "apps/v1", Kind: "Deployment", TypeIfMissing: true},
	{Kind: "Deployment"},
}

// PackJSON equals decoding and Pack for any object and any options; and the fields that the host uses equal those in
// the JSON.
func TestPackJSON_IsDecodingAndPack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	packed := 0
	for range 2000 {
		var js bytes.Buffer
		writeJSON(&js, rnd, randomObject(rnd))
		if samePacked(t, js.Bytes()) {
			packed++
		}
	}
	if packed < 200 || packed > 1900 {
		t.Errorf("%d of 2000 objects can be packed: the test is too easy", packed)
	}
}

func FuzzPackJSON(f *testing.F) {
	f.Add(full)
	f.Add(`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","generation":1e3},"x":"\ud83d\ude00"}`)
	f.Add(`{"kind":"K","metadata":{"name":"a","name":"b","managedFields":[{}]}}`)
	f.Add(`{"items":[],"metadata":{"resourceVersion":"1"}}`)
	f.Fuzz(func(t *testing.T, text string) { samePacked(t, []byte(text)) })
}

// samePacked compares PackJSON with decoding and Pack, and with a model of the stored part. It reports whether the
// object can be packed.
func samePacked(t *testing.T, js []byte) (packed bool) {
	t.Helper()
	for _, opts := range everyOptions {
		got, err := reflector.PackJSON(js, opts)
		var content map[string]any
		if utiljson.Unmarshal(js, &content) != nil {
			if err == nil {
				t.Errorf("%s: is no JSON, and packed", js)
			}
			continue
		}
		want, wantErr := reflector.Pack(content, opts)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s %+v\nPackJSON: %v\nPack:     %v", js, opts, err, wantErr)
		}
		if err != nil || wantErr != nil {
			continue
		}
		packed = true
		if diff := cmp.Diff(fieldsOf(want), fieldsOf(got)); diff != "" || !bytes.Equal(got.Msgpack(), want.Msgpack()) {
			t.Errorf("%s %+v\nPackJSON: %x\nPack:     %x\n%s", js, opts, got.Msgpack(), want.Msgpack(), diff)
		}
		if diff := cmp.Diff(modelFields(content), fieldsOf(got)); diff != "" {
			t.Errorf("%s %+v: fields: %s", js, opts, diff)
		}
		b, err := abi.AppendValue(nil, modelKept(content, opts))
		if err != nil || !bytes.Equal(got.Msgpack(), b) {
			t.Errorf("%s %+v\nis   %x\nwant %x %v", js, opts, got.Msgpack(), b, err)
		}
	}
	return packed
}

// fields are the fields of an object that the host uses.
type fields struct {
	Ref                  reflector.ObjectRef
	UID, ResourceVersion string
	Generation           int64
	Deleting             bool
	Labels               []string
	Owners               []reflector.Owner
}

func fieldsOf(o *reflector.Object) fields {
	f := fields{
		Ref: o.Ref(), UID: o.UID(), ResourceVersion: o.ResourceVersion(), Generation: o.Generation(), Deleting: o.Deleting(),
		Owners: slices.Collect(o.Owners()),
	}
	for k, v := range o.Labels().All() {
		f.Labels = append(f.Labels, k+"="+v)
	}
	return f
}

// modelFields reads the same from the decoded object, in the simplest way.
func modelFields(content map[string]any) fields {
	var meta struct {
		Name, Namespace, UID, ResourceVersion string
		Generation                            int64
		DeletionTimestamp                     any
		Labels                                map[string]string
	}
	m := content["metadata"].(map[string]any)
	exact := map[string]any{} // encoding/json also accepts keys in another case
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp", "labels"} {
		exact[key] = m[key]
	}
	js, err := json.Marshal(exact)
	if err == nil {
		err = json.Unmarshal(js, &meta)
	}
	if err != nil {
		panic(err)
	}
	f := fields{
		Ref: reflector.ObjectRef{Namespace: meta.Namespace, Name: meta.Name}, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		Generation: meta.Generation, Deleting: meta.DeletionTimestamp != nil,
	}
	for k, v := range meta.Labels {
		f.Labels = append(f.Labels, k+"="+v)
	}
	slices.SortFunc(f.Labels, func(a, b string) int {
		ka, _, _ := strings.Cut(a, "=")
		kb, _, _ := strings.Cut(b, "=")
		return strings.Compare(ka, kb)
	})
	owners, _ := m["ownerReferences"].([]any)
	for _, e := range owners {
		w := e.(map[string]any)
		s := func(key string) string { v, _ := w[key].(string); return v }
		controller, _ := w["controller"].(bool)
		gv, _ := schema.ParseGroupVersion(s("apiVersion"))
		f.Owners = append(f.Owners, reflector.Owner{Group: gv.Group, Kind: s("kind"), Name: s("name"), UID: s("uid"), Controller: controller})
	}
	return f
}

// modelKept returns the part of content that opts select; it changes content.
func modelKept(content map[string]any, opts reflector.Options) map[string]any {
	kept := map[string]any{}
	for k, v := range content {
		if !opts.Metadata || k == "apiVersion" || k == "kind" || k == "metadata" {
			kept[k] = v
		}
	}
	if meta := content["metadata"].(map[string]any); !opts.ManagedFields {
		delete(meta, "managedFields")
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if opts.TypeIfMissing && apiVersion != "" && kind != "" {
		return kept
	}
	if opts.APIVersion != "" {
		kept["apiVersion"] = opts.APIVersion
	}
	if opts.Kind != "" {
		kept["kind"] = opts.Kind
	}
	return kept
}

// randomObject returns an object, parts of which are sometimes missing or of a wrong type.
func randomObject(rnd *rand.Rand) map[string]any {
	one := func(good ...any) any {
		if rnd.IntN(60) == 0 {
			good = []any{nil, true, int64(3), 2.5, "text", []any{"x"}, map[string]any{"k": "v"}}
		}
		return good[rnd.IntN(len(good))]
	}
	some := func() string { return strings.Repeat("x", rnd.IntN(40)) + fmt.Sprint(rnd.IntN(9)) }
	texts := map[string]any{}
	for range rnd.IntN(20) {
		texts[some()] = one(some(), "é世😀", "")
	}
	var owners []any
	for range rnd.IntN(3) {
		owners = append(owners, one(map[string]any{
			"apiVersion": one("v1", "apps/v1", ""), "kind": one("Node", "Pod"), "name": some(), "uid": one(some()), "controller": one(true, false),
		}))
	}
	meta := map[string]any{
		"name": one(some()), "namespace": one("ns", ""), "uid": one(some()), "resourceVersion": one("7", some()),
		"generation": one(int64(0), int64(1), int64(-1), int64(1)<<40), "labels": one(texts), "annotations": one(texts, map[string]any{}),
		"ownerReferences": one(owners, []any{}), "deletionTimestamp": one(nil, metav1.Now().String()), "finalizers": one([]any{"f"}, []any{}),
		"managedFields": one([]any{map[string]any{"manager": "m", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}),
	}
	content := map[string]any{"metadata": one(meta), "apiVersion": one("v1", "apps/v1"), "kind": one("Pod", ""), "spec": texts, "A": one(int64(1)), "zz": one(nil)}
	for _, m := range []map[string]any{meta, content} {
		for k := range m {
			if rnd.IntN(8) == 0 && k != "name" && k != "metadata" {
				delete(m, k)
			}
		}
	}
	return content
}

// writeJSON encodes v with the keys of maps in any order, like API servers.
func writeJSON(dst *bytes.Buffer, rnd *rand.Rand, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		dst.Write(b)
		return
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for i, k := range keys {
		dst.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(dst, "%q:", k)
		writeJSON(dst, rnd, m[k])
	}
	if len(keys) == 0 {
		dst.WriteByte('{')
	}
	dst.WriteByte('}')
}

// BenchmarkPackJSON_Pod packs a pod of 4.4 KB from its JSON.
func BenchmarkPackJSON_Pod(b *testing.B) {
	js := pod(b, 1)
	b.SetBytes(int64(len(js)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reflector.PackJSON(js, reflector.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
