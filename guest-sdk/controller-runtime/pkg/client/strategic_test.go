// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStrategicMergeFrom_IsThePatchOfTheJSON compares the patches for random
// changes to all built-in kinds with those that apimachinery makes from the
// JSON of both states.
func TestStrategicMergeFrom_IsThePatchOfTheJSON(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme.Scheme)).NilChance(0.2).NumElements(1, 3)
	r := rand.New(rand.NewSource(2))
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		from, ok := reflect.New(typ).Interface().(client.Object)
		if !ok {
			continue // a list, or options
		}
		for range 5 {
			other := reflect.New(typ)
			fill.Fill(from)
			fill.Fill(other.Interface())
			to, ok := from.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatalf("%v: no copy", gvk)
			}
			change(r, reflect.ValueOf(to).Elem(), other.Elem())
			comparePatch(t, from, to)
		}
	}
}

// comparePatch compares the patch with that of apimachinery.
func comparePatch(t *testing.T, from, to client.Object) {
	t.Helper()
	got, gotErr := client.StrategicMergeFrom(from).Data(to)
	want, wantErr := strategicpatch.CreateTwoWayMergePatch(marshal(t, from), marshal(t, to), to)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%T: got %v, want %v", to, gotErr, wantErr)
	}
	if string(got) != string(want) {
		t.Fatalf("%T:\ngot  %s\nwant %s", to, got, want)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// change changes parts of v. New content comes from other.
func change(r *rand.Rand, v, other reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && r.Intn(2) == 0 {
				change(r, v.Field(i), other.Field(i))
			}
		}
	case reflect.Pointer:
		if v.IsNil() || other.IsNil() || r.Intn(4) == 0 {
			v.Set(other)
			return
		}
		change(r, v.Elem(), other.Elem())
	case reflect.Slice:
		if v.Len() == 0 || other.Len() == 0 || v.Type().Elem().Kind() == reflect.Uint8 {
			v.Set(other)
			return
		}
		changeList(r, v, other)
	default:
		v.Set(other)
	}
}

// changeList changes, removes, moves or adds an item. An item that is a copy of
// another one has the same merge key.
func changeList(r *rand.Rand, v, other reflect.Value) {
	at, last := v.Index(r.Intn(v.Len())), v.Index(v.Len()-1)
	switch r.Intn(5) {
	case 0:
		change(r, at, other.Index(0))
	case 1:
		at.Set(last)
		v.Set(v.Slice(0, v.Len()-1))
	case 2:
		was := reflect.ValueOf(at.Interface())
		at.Set(last)
		last.Set(was)
	case 3:
		v.Set(reflect.Append(v, other.Index(0)))
	default:
		v.Set(reflect.Append(v, at))
		change(r, v.Index(v.Len()-1), other.Index(0))
	}
}

// TestStrategicMergeFrom_DeletesItemsWithTheSameKey removes one of two ports
// that differ in their protocol only, which their merge key does not include.
func TestStrategicMergeFrom_DeletesItemsWithTheSameKey(t *testing.T) {
	from := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "a", Port: 53, Protocol: corev1.ProtocolTCP}, {Name: "b", Port: 53, Protocol: corev1.ProtocolUDP},
	}}}
	to := from.DeepCopy()
	to.Spec.Ports = to.Spec.Ports[:1]
	to.Spec.Ports[0].NodePort = 30000
	comparePatch(t, from, to)
	got, err := client.StrategicMergeFrom(from).Data(to)
	want := `{"spec":{"$setElementOrder/ports":[{"port":53}],"ports":[{"name":"a","nodePort":30000,"port":53,"protocol":"TCP"},{"$patch":"delete","port":53}]}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

// TestStrategicMergeFrom_RefusesUnstructuredObjects checks that an object
// without Go type, and so without merge keys, is an error.
func TestStrategicMergeFrom_RefusesUnstructuredObjects(t *testing.T) {
	from := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "K", "spec": map[string]any{"a": int64(1)}}}
	to := from.DeepCopy()
	to.Object["spec"] = map[string]any{"a": int64(2)}
	if patch, err := client.StrategicMergeFrom(from).Data(to); err == nil {
		t.Errorf("patch %s", patch)
	}
}
