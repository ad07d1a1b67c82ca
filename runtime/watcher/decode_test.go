// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/util/json"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func testDecoder(opts reflector.Options) *decoder {
	return &decoder{options: opts, store: reflector.NewWriter().Store(), log: slog.New(slog.DiscardHandler), decoded: new(atomic.Int64)}
}

// slowEvents and slowObjects are the simplest possible decoders: they use encoding/json and maps for everything, like
// client-go's dynamic client.
type slowEvents struct{ readOnly }

func (slowEvents) Decode(data []byte, _ *schema.GroupVersionKind, into k8sruntime.Object) (k8sruntime.Object, *schema.GroupVersionKind, error) {
	return into, nil, json.Unmarshal(data, into)
}

type slowObjects struct{ opts reflector.Options }

func (d slowObjects) Decode(data []byte, _ *schema.GroupVersionKind, _ k8sruntime.Object) (k8sruntime.Object, *schema.GroupVersionKind, error) {
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil || content == nil {
		return nil, nil, fmt.Errorf("no object: %w", err)
	}
	if o, err := reflector.Pack(content, d.opts); err == nil {
		return o, nil, nil
	}
	if content["kind"] == "Status" && content["apiVersion"] == "v1" {
		st := &metav1.Status{}
		return st, nil, json.Unmarshal(data, st)
	}
	return &unpacked{}, nil, nil
}

// events decodes a stream and returns its events as text, and how it ends.
func events(frames io.ReadCloser, event, object k8sruntime.Decoder) (list []string, end string) {
	d := restwatch.NewDecoder(streaming.NewDecoder(frames, event), object)
	for {
		t, obj, err := d.Decode()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return list, err.Error()
		case err != nil:
			return list, "broken"
		}
		list = append(list, string(t)+" "+contentOf(obj))
	}
}

func contentOf(obj k8sruntime.Object) string {
	switch o := obj.(type) {
	case *reflector.Object:
		return fmt.Sprintf("%s %x", o.Ref(), o.Msgpack())
	case *metav1.Status:
		return fmt.Sprintf("%+v", *o)
	}
	return fmt.Sprintf("%T", obj)
}

func sameEvents(t *testing.T, text string) {
	t.Helper()
	body := func() io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
	want, wantEnd := events(serializerjson.Framer.NewFrameReader(body()), slowEvents{}, slowObjects{})
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"whole":     func(r io.Reader) io.Reader { return r },
		"by bytes":  iotest.OneByteReader,
		"by halves": iotest.HalfReader,
	} {
		d := testDecoder(reflector.Options{})
		got, end := events(framer{}.NewFrameReader(io.NopCloser(reader(body()))), eventDecoder{}, d)
		if diff := cmp.Diff(want, got); diff != "" || end != wantEnd {
			t.Errorf("%s, %.300q: ends with %s, want %s\n%s", name, text, end, wantEnd, diff)
		}
	}
}

var streams = []string{
	``, "\n", ` `, `null`, `[]`, `"x"`, `1`, `{`, `}`, `{]`, `{}`, "{}\n{}\n",
	`{"type":"ADDED","object":{"kind":"K","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"1"},"s":"} \" \\ {"}}` + "\n" +
		`{"type":"BOOKMARK","object":{"kind":"K","apiVersion":"v1","metadata":{"resourceVersion":"5"}}}` + "\n",
	`{"type":"ADDED","object":{"metadata":{"name":"a"}}}{"type":"DELETED","object":{"metadata":{"name":"b"}}}`,
	"{\n \"type\": \"ADDED\",\n \"object\": {\n  \"metadata\": {\"name\": \"a\"}\n }\n}\n" + `{"type":"ADDED","object":{"metadata":{"name":"b"}}}`,
	`{"object":{"metadata":{"name":"a"}},"type":"MODIFIED"}`,
	`{"type":"ADDED","object":{"metadata":{"name":"a"}},"more":{}}`,
	`{"type":"ADDED","type":"DELETED","object":{"metadata":{"name":"a"}}}`,
	`{"type":"ADDED","object":{"metadata":{"name":"a"}},"object":{}}`,
	`{"type":"ADD\u0045D","object":{"metadata":{"name":"a"}}}`, `{"type":"RENAMED","object":{}}`, `{"type":3,"object":{}}`,
	`{"type":"ADDED","object":null}`, `{"type":"ADDED","object":[]}`, `{"type":"ADDED","object":"x"}`, `{"type":"ADDED"}`, `{"object":{}}`,
	`{"type":"ADDED","object":{"metadata":{"name":"a"}},}`, `{"type":"ADDED" "object":{}}`, `{"type":"ADDED","object":{"a":1e3,"metadata":{"name":"a"}}}`,
	`{"type":"ADDED","object":{"metadata":{"name":"a"},"x":tru}}`, `{"type":"ADDED","object":{"metadata":{"name":"a"`,
	`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410,"reason":"Expired"}}` + "\n" + `<html>`,
	"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\x01\"}}}",
	`{"type":"ADDED","object":{"metadata":{"name":"` + strings.Repeat("long", 10_000) + `"}}}` + "\n" + `{"type":"ADDED","object":{"metadata":{"name":"b"}}}`,
}

// The events of a watch equal those of client-go's own decoders, however the bytes arrive, and it ends in the same way.
func TestEventDecoder_IsTheSlowWay(t *testing.T) {
	for _, text := range streams {
		sameEvents(t, text)
	}
}

func FuzzEventDecoder(f *testing.F) {
	for _, text := range streams {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { sameEvents(t, text) })
}

// slowList decodes a complete list.
func slowList(js []byte, opts reflector.Options) ([]string, error) {
	var list struct {
		Kind       string               `json:"kind"`
		APIVersion string               `json:"apiVersion"`
		Metadata   metav1.ListMeta      `json:"metadata"`
		Items      []stdjson.RawMessage `json:"items"`
	}
	var keys map[string]any
	if err := errors.Join(json.Unmarshal(js, &list), json.Unmarshal(js, &keys)); err != nil {
		return nil, err
	}
	if _, has := keys["items"]; list.Kind == "" || !has && !strings.HasSuffix(list.Kind, "List") {
		return nil, errors.New("no list")
	}
	out := []string{list.Metadata.ResourceVersion, list.Metadata.Continue}
	if opts.Kind == "" {
		opts.APIVersion, opts.Kind, opts.TypeIfMissing = list.APIVersion, strings.TrimSuffix(list.Kind, "List"), true
	}
	for _, item := range list.Items {
		o, _, err := slowObjects{opts}.Decode(item, nil, nil)
		if err != nil {
			return nil, err
		}
		if o, ok := o.(*reflector.Object); ok {
			out = append(out, contentOf(o))
		}
	}
	return out, nil
}

func sameList(t *testing.T, js []byte) {
	t.Helper()
	for _, opts := range []reflector.Options{{}, {ManagedFields: true}, {Metadata: true, APIVersion: "v1", Kind: "Pod"}} {
		want, wantErr := slowList(js, opts)
		list, err := readList(iotest.HalfReader(bytes.NewReader(js)), testDecoder(opts), nil)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%.300q: %v, want %v", js, err, wantErr)
		}
		if err != nil || wantErr != nil {
			continue
		}
		got := []string{list.ResourceVersion, list.Continue}
		for _, o := range list.Items {
			got = append(got, contentOf(o))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.300q: %s", js, diff)
		}
	}
}

const item = `{"metadata":{"name":"a","uid":"u","managedFields":[]},"spec":{"x":[1,2]}}`

var listBodies = []string{
	``, `{`, `{}`, `null`, `[]`, `<html>`, `{"kind":"PodList"}`, `{"kind":"Pod"}`, `{"kind":"Status","apiVersion":"v1","status":"Failure"}`,
	`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c"},"items":[` + item + `, ` + item + `]}` + "\n",
	`{"apiVersion":"v1","items":[` + item + `],"kind":"PodList","metadata":{"resourceVersion":"7"}}`,
	`{"items":[` + item + `,{"kind":"Own","apiVersion":"x/v1","metadata":{"name":"b"}},{"kind":"Half","metadata":{"name":"c"}}],"apiVersion":"v1","kind":"PodList"}`,
	`{"kind":"PodList","items":[` + item + `],"apiVersion":"v1"}`, `{"kind":"PodList","items":[` + item + `]}`, `{"items":[` + item + `]}`,
	`{"kind":"PodList","items":null}`, `{"kind":"PodList","items":nul}`, `{"kind":"PodList","items":{}}`, `{"kind":"PodList","items":[]} x`,
	`{"kind":"PodList","items":[null]}`, `{"kind":"PodList","items":[1]}`, `{"kind":"PodList","items":[{}]}`, `{"kind":"PodList","items":[{},` + item + `]}`,
	`{"kind":"PodList","items":[` + item + `,]}`, `{"kind":"PodList","items":[,]}`, `{"kind":"PodList","items":[` + item + item + `]}`,
	`{"kind":"PodList","items":[{"metadata":{"name":"a"},"x":}]}`, `{"kind":"PodList","items":[` + item, `{"kind":"PodList","items":[]`, `{"kind":"PodList",}`,
	`{"kind":1}`, `{"kind":"PodList","metadata":3}`, `{"kind":"PodList","more":{"a":[true,false,null,-1.5e3,"x"]},"items":[]}`, `{"kind":"PodList","more":tru}`,
	"{\n  \"kind\": \"PodList\",\n  \"items\": [\n    {\n      \"metadata\": {\"name\": \"a\"}\n    }\n  ]\n}\n", `{"kind":"PodList":1}`, `{kind:"PodList"}`,
}

// A list that is read as it arrives equals the list decoded at once; a response that is not a list is never treated as
// an empty one.
func TestReadList_IsTheSlowWay(t *testing.T) {
	for _, js := range listBodies {
		sameList(t, []byte(js))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var items []string
		for i := range rnd.IntN(200) {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"n%d"},"data":%q}`, i, strings.Repeat("x", rnd.IntN(3000))))
		}
		members := []string{`"kind":"List"`, `"apiVersion":"v1"`, `"metadata":{"continue":"c"}`, `"items":[` + strings.Join(items, ",") + `]`}
		rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		sameList(t, []byte("{"+strings.Join(members, ",")+"}"))
	}
}

func FuzzReadList(f *testing.F) {
	for _, js := range listBodies {
		f.Add([]byte(js))
	}
	f.Fuzz(func(t *testing.T, js []byte) {
		if !repeatsKey(js) {
			sameList(t, js)
		}
	})
}

// repeatsKey reports whether the outermost object has a duplicate key: the items then depend on the order.
func repeatsKey(js []byte) bool {
	d := stdjson.NewDecoder(bytes.NewReader(js))
	if _, err := d.Token(); err != nil {
		return false
	}
	var keys []string
	for d.More() {
		key, err := d.Token()
		var skip stdjson.RawMessage
		if name, ok := key.(string); err != nil || !ok || d.Decode(&skip) != nil {
			return false
		} else if slices.Contains(keys, name) {
			return true
		} else {
			keys = append(keys, name)
		}
	}
	return false
}

// The store's own copy of a known state is used, and an object that can no longer be packed keeps its last state.
func TestReadList_KeepsWhatIsKnown(t *testing.T) {
	w := reflector.NewWriter()
	known, err := reflector.PackJSON([]byte(`{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}`), reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Replace([]*reflector.Object{known}, "1", func(reflector.Event) {})
	d := testDecoder(reflector.Options{})
	d.store = w.Store()
	for meta, want := range map[string]bool{
		`"uid":"u","resourceVersion":"1"`: true, `"uid":"u","resourceVersion":"2"`: false, `"uid":"v","resourceVersion":"1"`: false,
		`"uid":"u","resourceVersion":"2","labels":"none"`: true,
	} {
		list, err := readList(strings.NewReader(`{"kind":"List","apiVersion":"v1","items":[{"metadata":{"name":"a",`+meta+`}}]}`), d, nil)
		if err != nil || len(list.Items) != 1 || (list.Items[0] == known) != want {
			t.Errorf("%s: %v, %v, the known one: want %t", meta, list, err, want)
		}
	}
}

// TestReadList_CountsObjectsAsTheyArrive: the progress of a list counts the objects that have been read, before the list
// is complete.
func TestReadList_CountsObjectsAsTheyArrive(t *testing.T) {
	d := testDecoder(reflector.Options{})
	d.arrived = new(atomic.Int64)
	item := func(name string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"x","resourceVersion":"1"}}`
	}
	begin := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[` + item("a") + "," + item("b") + ","
	seen := int64(-1)
	rest := readerFunc(func(p []byte) (int, error) {
		if seen < 0 {
			seen = d.arrived.Load()
			return copy(p, item("c")+"]}"), nil
		}
		return 0, io.EOF
	})
	list, err := readList(io.MultiReader(strings.NewReader(begin), rest), d, nil)
	if err != nil || len(list.Items) != 3 || d.arrived.Load() != 3 {
		t.Fatalf("%v, %d", err, d.arrived.Load())
	}
	if seen != 2 {
		t.Errorf("%d objects are counted before the list is complete, want 2", seen)
	}
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
