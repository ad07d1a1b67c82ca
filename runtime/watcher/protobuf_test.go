// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// inProtobuf encodes obj like API servers.
func inProtobuf(t testing.TB, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	return inProtobufOf(t, "v1", kind, obj)
}

func inProtobufOf(t testing.TB, apiVersion, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	b, err := (&k8sruntime.Unknown{TypeMeta: k8sruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), b...)
}

func someConfigMaps(n int) *corev1.ConfigMapList {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}}
	for i := range n {
		list.Items = append(list.Items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("n", i), UID: "u", ResourceVersion: "5"},
			Data:       map[string]string{"b": "1", "a": string(bytes.Repeat([]byte{'x'}, 300*i))}, BinaryData: map[string][]byte{"c": {1, 2}},
		})
	}
	return list
}

// TestProtobufList_IsTheListInJSON: the same objects, in whatever pieces it arrives.
func TestProtobufList_IsTheListInJSON(t *testing.T) {
	in := someConfigMaps(20)
	pb := inProtobuf(t, "ConfigMapList", in)
	js, err := json.Marshal(struct {
		metav1.TypeMeta
		*corev1.ConfigMapList
	}{metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, in})
	if err != nil {
		t.Fatal(err)
	}
	want, err := readList(bytes.NewReader(js), testDecoder(reflector.Options{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.Reader{bytes.NewReader(pb), iotest.OneByteReader(bytes.NewReader(pb))} {
		got, err := readList(body, testDecoder(reflector.Options{}), nil)
		if err != nil || len(got.Items) != 20 || got.ResourceVersion != "7" || got.Continue != "more" {
			t.Fatalf("%v, %d items at %s", err, len(got.Items), got.ResourceVersion)
		}
		for i := range got.Items {
			g, w := got.Items[i].(*reflector.Object), want.Items[i].(*reflector.Object) //nolint:forcetypeassert // lists have nothing else
			if !g.Same(w) || !bytes.Equal(g.Msgpack(), w.Msgpack()) {
				t.Errorf("item %d:\n got %q\nwant %q", i, g.Msgpack(), w.Msgpack())
			}
		}
	}
}

// TestProtobufList_CutAnywhereIsNoList: a partial list must not be accepted.
func TestProtobufList_CutAnywhereIsNoList(t *testing.T) {
	pb := inProtobuf(t, "ConfigMapList", someConfigMaps(3))
	list := bytes.LastIndex(pb, []byte("\x1a\x00\x22\x00")) // the bytes after the list have no meaning
	for n := len(protobufMagic); n < list; n++ {
		if l, err := readList(bytes.NewReader(pb[:n]), testDecoder(reflector.Options{}), nil); err == nil {
			t.Errorf("%d of %d bytes: %d items", n, list, len(l.Items))
		}
	}
}

// TestProtobuf_UnknownFieldsAskForJSON: fields of a later API server must not get lost: the list and the event are
// rejected, and JSON is requested.
func TestProtobuf_UnknownFieldsAskForJSON(t *testing.T) {
	later := func(b []byte) []byte { return append(b, 0xfa, 0x0f, 1, 'x') } // field 255
	cm, err := someConfigMaps(1).Items[0].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func(d *decoder) error{
		"list": func(d *decoder) error {
			l := append([]byte{0x0a, 0, 0x12}, byte(len(later(cm))))
			_, err := readList(bytes.NewReader(inProtobuf(t, "ConfigMapList", raw(append(l, later(cm)...)))), d, nil)
			return err
		},
		"event": func(d *decoder) error {
			_, _, err := d.Decode(inProtobuf(t, "ConfigMap", raw(later(cm))), nil, nil)
			return err
		},
	} {
		d := testDecoder(reflector.Options{})
		d.source.Resource.Version = "v1"
		if !d.takesProtobuf() {
			t.Error("protobuf is not asked for")
		}
		if err := try(d); !errors.Is(err, reflector.ErrNotRead) || d.takesProtobuf() {
			t.Errorf("%s: %v; protobuf is asked for: %v", what, err, d.takesProtobuf())
		}
	}
}

// TestProtobufList_AnEmptyOneAsksForJSON: for a kind whose JSON contains more than its protobuf. Otherwise, the first
// object would end the watch, which would have to list again.
func TestProtobufList_AnEmptyOneAsksForJSON(t *testing.T) {
	for kind, want := range map[string]bool{"StatefulSetList": false, "DeploymentList": true} {
		d := testDecoder(reflector.Options{})
		d.source.Resource = schema.GroupVersionResource{Group: "apps", Version: "v1"}
		_, err := readList(bytes.NewReader(inProtobufOf(t, "apps/v1", kind, raw("\x0a\x00"))), d, nil)
		if errors.Is(err, reflector.ErrNotRead) == want || d.takesProtobuf() != want {
			t.Errorf("%s: %v; protobuf is asked for: %v", kind, err, d.takesProtobuf())
		}
	}
}

type raw []byte

func (r raw) Marshal() ([]byte, error) { return r, nil }

// TestProtobuf_OtherObjectsOfAWatch: an error is a Status, and a bookmark, which has no name, keeps its version and
// annotations.
func TestProtobuf_OtherObjectsOfAWatch(t *testing.T) {
	d := testDecoder(reflector.Options{})
	o, _, err := d.Decode(inProtobuf(t, "Status", &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}), nil, nil)
	if st, ok := o.(*metav1.Status); err != nil || !ok || st.Code != 410 || st.Reason != metav1.StatusReasonExpired {
		t.Errorf("a Status is %v, %v", o, err)
	}
	o, _, err = d.Decode(inProtobuf(t, "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}), nil, nil)
	if b := bookmarkOf(o); err != nil || b.ResourceVersion != "9" || b.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("a bookmark is %v, %v", b, err)
	}
}

// FuzzProtobufList: no bytes make it panic, and accepted input gives the same result as client-go.
func FuzzProtobufList(f *testing.F) {
	f.Add(inProtobuf(f, "ConfigMapList", someConfigMaps(2))[len(protobufMagic):])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readProtobufList(bufio.NewReader(bytes.NewReader(append([]byte("k8s\x00"), b...))), testDecoder(reflector.Options{}), nil)
		if err != nil {
			return
		}
		var unknown k8sruntime.Unknown
		var want corev1.ConfigMapList
		if unknown.Unmarshal(b) != nil || unknown.Kind != "ConfigMapList" || want.Unmarshal(unknown.Raw) != nil {
			return
		}
		if len(got.Items) > len(want.Items) || got.ResourceVersion != want.ResourceVersion {
			t.Errorf("%d items at %q, want %d at %q", len(got.Items), got.ResourceVersion, len(want.Items), want.ResourceVersion)
		}
	})
}

// FuzzProtobufEvent: no bytes make the decoders of a watch panic.
func FuzzProtobufEvent(f *testing.F) {
	ev := metav1.WatchEvent{Type: "ADDED", Object: k8sruntime.RawExtension{Raw: inProtobuf(f, "ConfigMap", &someConfigMaps(1).Items[0])}}
	b, err := ev.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want metav1.WatchEvent
		_, _, err := protobufEventDecoder{}.Decode(b, nil, &got)
		if err != nil {
			return
		}
		if want.Unmarshal(b) == nil && (got.Type != want.Type || !bytes.Equal(got.Object.Raw, want.Object.Raw)) {
			t.Errorf("%q of %q, want %q of %q", got.Type, got.Object.Raw, want.Type, want.Object.Raw)
		}
		_, _, _ = testDecoder(reflector.Options{}).Decode(got.Object.Raw, nil, nil)
	})
}
