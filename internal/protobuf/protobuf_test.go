// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// kindsWithTables returns the built-in kinds that have a table.
func kindsWithTables(t testing.TB) map[schema.GroupVersionKind]*Message {
	t.Helper()
	found := map[schema.GroupVersionKind]*Message{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if _, ok := typ.FieldByName("ObjectMeta"); !ok {
			continue // lists, options
		}
		m, err := TableOf(typ)
		if err != nil {
			t.Log(err)
			continue
		}
		found[gvk] = m
	}
	return found
}

// TestTableOf_ReadsNearlyAllKinds names the kinds that are read as JSON.
func TestTableOf_ReadsNearlyAllKinds(t *testing.T) {
	var without []string
	with := kindsWithTables(t)
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if _, ok := typ.FieldByName("ObjectMeta"); ok && with[gvk] == nil {
			without = append(without, gvk.Kind)
		}
	}
	slices.Sort(without)
	if got := slices.Compact(without); !slices.Equal(got, []string{"Eviction", "StatefulSet"}) {
		t.Errorf("kinds without a table: %q", got)
	}
}

// byJSON is the oracle: the msgpack of the JSON that client-go's types produce from the protobuf.
func byJSON(t testing.TB, gvk schema.GroupVersionKind, pb []byte, drop bool) ([]byte, bool) {
	t.Helper()
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	if err := obj.(interface{ Unmarshal(b []byte) error }).Unmarshal(pb); err != nil { //nolint:forcetypeassert // all are
		return nil, false
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	js, err := json.Marshal(obj)
	if err != nil {
		return nil, false
	}
	m, err := TableOf(reflect.TypeOf(obj).Elem())
	if err != nil {
		t.Fatal(err)
	}
	return (&transcode.Transcoder{OmitManagedFields: drop, Opaque: m.Opaque()}).Append(nil, js)
}

// TestMessage_OpaqueFieldsAreThoseOfTheTypes compares the opaque fields with the Go types: if a type had a RawExtension in a place that
// the table cannot represent, its JSON would be decoded.
func TestMessage_OpaqueFieldsAreThoseOfTheTypes(t *testing.T) {
	kinds := 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if _, ok := typ.FieldByName("ObjectMeta"); !ok {
			continue
		}
		var want []string
		rawPaths(typ, "", &want)
		var have []string
		if m, err := TableOf(typ); err == nil {
			fieldPaths(m.Opaque(), "", &have)
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%v: have %q, want %q", gvk, have, want)
		}
		if len(want) > 0 {
			kinds++
		}
	}
	if kinds < 10 {
		t.Errorf("%d kinds have opaque fields", kinds)
	}
}

// rawPaths appends the JSON paths of the RawExtensions of a type. A map in a path is an error of the table, so it has a path of its own.
func rawPaths(t reflect.Type, path string, found *[]string) {
	switch {
	case t == reflect.TypeFor[runtime.RawExtension]():
		*found = append(*found, path)
	case t.Kind() == reflect.Map:
		rawPaths(t.Elem(), path+"{}", found)
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		rawPaths(t.Elem(), path, found)
	case t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "k8s.io/api/"):
		for sf := range t.Fields() {
			name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
			inner := path
			if name != "" {
				inner += "." + name
			}
			rawPaths(sf.Type, inner, found)
		}
	}
}

func fieldPaths(fields transcode.Fields, path string, found *[]string) {
	for key, inner := range fields {
		if fieldPaths(inner, path+"."+key, found); inner == nil {
			*found = append(*found, path+"."+key)
		}
	}
}

// TestTranscoder_OpaqueJSONIsUnchanged checks that no byte of a RawExtension changes.
func TestTranscoder_OpaqueJSONIsUnchanged(t *testing.T) {
	for _, js := range []string{`{"z":1.0, "a":2e0,"u":18446744073709551615,"n":-0.0,"s":"<&>\\u00e9\u2028"}`, `"text"`, `[ ]`, `1e300`, `true`} {
		raw := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: runtime.RawExtension{Raw: []byte(js)}, Revision: 1}
		pb, err := raw.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		m, err := TableOf(reflect.TypeFor[appsv1.ControllerRevision]())
		if err != nil {
			t.Fatal(err)
		}
		got, ok := (&Transcoder{}).Append(nil, m, "apps/v1", "ControllerRevision", pb)
		texts, err := abi.OpaqueTexts(got)
		if !ok || err != nil || string(texts.Keys["data"].Text) != js {
			t.Errorf("%s: %q, %v", js, got, err)
		}
		text := `{"data": ` + js + ` ,"revision":1}`
		if got, ok = (&transcode.Transcoder{Opaque: m.Opaque()}).Append(nil, []byte(text)); !ok {
			t.Errorf("%s: refused", text)
		}
		if texts, err = abi.OpaqueTexts(got); err != nil || string(texts.Keys["data"].Text) != js {
			t.Errorf("%s: %q, %v", js, got, err)
		}
	}
}

func check(t testing.TB, gvk schema.GroupVersionKind, m *Message, pb []byte, drop bool) {
	t.Helper()
	want, valid := byJSON(t, gvk, pb, drop)
	tr := Transcoder{OmitManagedFields: drop}
	got, ok := tr.Append(nil, m, gvk.GroupVersion().String(), gvk.Kind, pb)
	if !valid || !ok || !bytes.Equal(got, want) {
		t.Errorf("%s, without managed fields: %v: taken: %v, oracle: %v\n got %q\nwant %q", gvk, drop, ok, valid, got, want)
	}
}

// TestTranscoder_DoesWhatJSONDoes: the objects of k8s.io/api's own tests, which have every field, are transcoded like
// their JSON.
func TestTranscoder_DoesWhatJSONDoes(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for gvk, m := range kindsWithTables(t) {
		group := gvk.Group
		if group == "" {
			group = "core"
		}
		name := strings.Join([]string{group, gvk.Version, gvk.Kind, "pb"}, ".")
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "testdata/HEAD", name))
		if err != nil {
			continue // missing in the test data
		}
		n++
		var unknown runtime.Unknown
		if err := unknown.Unmarshal(data[len("k8s\x00"):]); err != nil {
			t.Fatal(err)
		}
		check(t, gvk, m, unknown.Raw, true)
		check(t, gvk, m, unknown.Raw, false)
	}
	if n < 100 {
		t.Errorf("%d kinds were tried", n)
	}
}

// TestTranscoder_DoesWhatJSONDoesAtRandom: objects with random fields of every kind are transcoded like their JSON.
func TestTranscoder_DoesWhatJSONDoesAtRandom(t *testing.T) {
	for gvk, m := range kindsWithTables(t) {
		fill := randfill.NewWithSeed(1).NilChance(0.4).NumElements(0, 3).MaxDepth(12).Funcs(fillers()...)
		for range 20 {
			obj, err := scheme.Scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			fill.Fill(obj)
			pb, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal() //nolint:forcetypeassert // all are
			if err != nil {
				t.Fatal(err)
			}
			check(t, gvk, m, pb, true)
		}
	}
}

// fillers fill types whose content is restricted.
func fillers() []any {
	return []any{
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = []byte(`{"a":` + []string{"1", "[null]", `"x"`}[c.Intn(3)] + `}`)
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawBytes([]byte(`{"f:a":{}}`)) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(4e9), 0) },
		func(at *metav1.MicroTime, c randfill.Continue) {
			*at = metav1.MicroTime{Time: metav1.Unix(c.Int63n(4e9), c.Int63n(1e6)*1000).Time}
		},
	}
}

// FuzzTranscoder: no bytes make it panic, and accepted input gives the same result as client-go.
func FuzzTranscoder(f *testing.F) {
	with := kindsWithTables(f)
	gvks := slices.SortedFunc(maps.Keys(with), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	for i := range gvks {
		f.Add(i, []byte("\x0a\x05\x0a\x01a\x12\x00"))
	}
	f.Fuzz(func(t *testing.T, i int, pb []byte) {
		gvk := gvks[uint(i)%uint(len(gvks))] //nolint:gosec // any will do
		tr := Transcoder{OmitManagedFields: true}
		got, ok := tr.Append(nil, with[gvk], gvk.GroupVersion().String(), gvk.Kind, pb)
		if !ok {
			return
		}
		if want, valid := byJSON(t, gvk, pb, true); valid && !bytes.Equal(got, want) {
			t.Errorf("%s %q:\n got %q\nwant %q", gvk, pb, got, want)
		}
	})
}
