// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// sameAsJSON sends obj and its JSON to variables of the same type, and compares
// the sent and the received values.
func sameAsJSON(t *testing.T, gvk schema.GroupVersionKind, typ reflect.Type, obj any) {
	t.Helper()
	js, err := json.Marshal(obj)
	if err != nil {
		t.Fatalf("%v: %v", gvk, err)
	}
	v, err := wasmctl.NewValue(obj)
	if err != nil {
		t.Fatalf("%v: %v", gvk, err)
	}
	sent, err := json.Marshal(v)
	if err != nil || !reflect.DeepEqual(parsed(t, sent), parsed(t, js)) {
		t.Fatalf("%v: sent\n%s\nwant\n%s\n%v", gvk, sent, js, err)
	}
	want, got := reflect.New(typ).Interface(), reflect.New(typ).Interface()
	if err := json.Unmarshal(js, want); err != nil {
		t.Fatalf("%v: %v", gvk, err)
	}
	if err := codec.Decode(wasmctl.Object{Value: v}, got); err != nil {
		t.Fatalf("%v: %v", gvk, err)
	}
	// Compare as JSON, because the bytes of a RawExtension may differ in white
	// space.
	if a, b := parsed(t, mustJSON(t, got)), parsed(t, mustJSON(t, want)); !reflect.DeepEqual(a, b) {
		t.Fatalf("%v: got\n%v\nwant\n%v", gvk, a, b)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	js, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func parsed(t *testing.T, js []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(js, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTypes_AreLikeJSON fills each type of k8s.io/api with random values.
func TestTypes_AreLikeJSON(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme.Scheme))
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		for range 3 {
			obj := reflect.New(typ).Interface()
			fill.Fill(obj)
			sameAsJSON(t, gvk, typ, obj)
		}
	}
}

// TestTypes_TakeWhatKubernetesHasWritten decodes the objects of
// k8s.io/api/testdata, in which each field is set.
func TestTypes_TakeWhatKubernetesHasWritten(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "HEAD", "*.json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		js, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var head runtime.TypeMeta
		if err := json.Unmarshal(js, &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		gvk := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
		typ := scheme.Scheme.AllKnownTypes()[gvk]
		if typ == nil {
			continue // a type that is only registered internally
		}
		obj := reflect.New(typ).Interface()
		if err := json.Unmarshal(js, obj); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sameAsJSON(t, gvk, typ, obj)
	}
}
