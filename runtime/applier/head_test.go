// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func TestPaused_AnyValueThatDoesNotSayNo(t *testing.T) {
	for value, want := range map[string]bool{
		"true": true, "True": true, "1": true, "yes": true, "since Monday, ask Anna": true, "no": true,
		"": false, " ": false, "false": false, "False": false, "FALSE": false, "0": false, " false ": false,
	} {
		if got := Paused(value); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

// A paused object is neither reconciled nor finalized, retains its finalizer and its attempts, and continues where it
// was.
func TestApply_PausedObjectIsLeftAlone(t *testing.T) {
	for name, cl := range map[string]*cluster{
		"there": {finalizers: []any{finalizerName}}, "without its finalizer": {}, "deleting": {finalizers: []any{finalizerName}, deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			cl.t = t
			s := &script{reconcile: failWith(abi.ResultError{Message: "no"})}
			a := newApplier(t, s, cl.on(s))
			a.Apply(t.Context(), testKey, testReason, time.Time{})
			cl.log, cl.paused = nil, "true"
			for range 3 {
				out := a.Apply(t.Context(), testKey, testReason, time.Time{})
				if !errors.Is(out.Err, ErrPaused) || out.Failed() || out.Action.Requeue || len(cl.log) != 0 || s.acquired != 1 {
					t.Fatalf("%+v: %v", out, cl.log)
				}
			}
			cl.paused = "false"
			if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); out.Attempt != 2 || !out.Failed() {
				t.Errorf("%+v", out)
			}
		})
	}
}

// A pause of an object that was deleted meanwhile ends with it.
func TestApply_GoneBeatsPaused(t *testing.T) {
	cl := &cluster{t: t, paused: "true", gone: true}
	s := &script{reconcile: await}
	if out := newApplier(t, s, cl.on(s)).Apply(t.Context(), testKey, testReason, time.Time{}); !errors.Is(out.Err, ErrObjectNotFound) {
		t.Errorf("%+v", out)
	}
}

func TestReadHead_ReadsWhatARunNeeds(t *testing.T) {
	object := pack(t, map[string]any{
		"annotations": map[string]any{"a": "b", PausedAnnotation: "true", "z": strings.Repeat("long", 100)}, "deletionTimestamp": "2026-01-01T00:00:00Z",
		"finalizers": []any{"other.io/x", finalizerName}, "generation": int64(1 << 40), "labels": map[string]any{"uid": "not this"},
		"name": "web", "ownerReferences": []any{map[string]any{"uid": "nor this"}}, "resourceVersion": "12", "uid": "u1",
	})
	h, err := readHead(object, finalizerName)
	want := head{uid: "u1", resourceVersion: "12", deleting: true, paused: true, finalizer: true}
	if diff := cmp.Diff(want, h, cmp.AllowUnexported(head{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if h, err = readHead(object, ""); err != nil || h.finalizer {
		t.Errorf("without a finalizer: %+v, %v", h, err)
	}
	h, err = readHead(pack(t, map[string]any{"deletionTimestamp": nil, "annotations": nil, "finalizers": nil}), finalizerName)
	if diff := cmp.Diff(head{}, h, cmp.AllowUnexported(head{})); diff != "" || err != nil {
		t.Errorf("of nothing: %v (-want +got):\n%s", err, diff)
	}
}

// The store's fields agree with the object's bytes, and reading them allocates nothing.
func TestHeadOf_IsThatOfTheBytes(t *testing.T) {
	forEachSeed(t, 200, func(t *testing.T, rnd func(int) int) {
		meta := map[string]any{"name": "web"}
		for key, values := range map[string][]any{
			"annotations":       {nil, map[string]any{}, map[string]any{"a": "b", PausedAnnotation: "false"}, map[string]any{PausedAnnotation: "for a while", "z": "y"}, map[string]any{"wasmctl.dev/other": "x"}},
			"deletionTimestamp": {nil, "2026-01-01T00:00:00Z"},
			"finalizers":        {nil, []any{}, []any{"other.io/x"}, []any{"other.io/x", finalizerName}},
			"uid":               {nil, "u1"},
			"resourceVersion":   {nil, "7"},
		} {
			if n := rnd(len(values) + 1); n < len(values) {
				meta[key] = values[n]
			}
		}
		o, err := reflector.Pack(map[string]any{"apiVersion": "v1", "kind": "X", "metadata": meta}, reflector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, finalizer := range []string{"", finalizerName} {
			want, err := readHead(o.Msgpack(), finalizer)
			if got := headOf(o, finalizer); got != want || err != nil {
				t.Errorf("%v: %+v, want %+v, %v", meta, got, want, err)
			}
		}
		if _, noted := o.Annotation(PausedAnnotation); !noted && testing.AllocsPerRun(10, func() { headOf(o, finalizerName) }) > 0 {
			t.Errorf("%v: allocates", meta)
		}
	})
}

// For any bytes, reading ends without a panic; and for an object that the ABI accepts, the result equals that of
// decoding.
func FuzzReadHead(f *testing.F) {
	f.Add(pack(f, map[string]any{"name": "a", "uid": "u", "generation": int64(-7), "resourceVersion": "1", "deletionTimestamp": "x"}))
	f.Add(pack(f, map[string]any{"finalizers": []any{finalizerName, "b"}, "annotations": map[string]any{PausedAnnotation: "true"}}))
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x81, 0xa1, 'a', 0xd3, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHead(b, finalizerName)
		object, decodeErr := abi.DecodeObject(b)
		meta, ok := object["metadata"].(map[string]any)
		if decodeErr != nil || !ok {
			return
		}
		if want, ok := modelHead(meta); ok && (err != nil || !cmp.Equal(want, h, cmp.AllowUnexported(head{}))) {
			t.Errorf("%v\n%s", err, cmp.Diff(want, h, cmp.AllowUnexported(head{})))
		}
	})
}

// modelHead reads decoded metadata, and returns false if a field has an unexpected type.
func modelHead(meta map[string]any) (h head, ok bool) {
	text := func(v any, dst *string) (ok bool) {
		*dst, ok = v.(string)
		return ok || v == nil
	}
	ok = text(meta["uid"], &h.uid) && text(meta["resourceVersion"], &h.resourceVersion)
	h.deleting = meta["deletionTimestamp"] != nil
	annotations, isMap := meta["annotations"].(map[string]any)
	list, isList := meta["finalizers"].([]any)
	ok = ok && (isMap || meta["annotations"] == nil) && (isList || meta["finalizers"] == nil)
	var value string
	ok = ok && text(annotations[PausedAnnotation], &value)
	h.paused = Paused(value)
	for _, v := range list {
		name, isString := v.(string)
		ok = ok && isString
		h.finalizer = h.finalizer || name == finalizerName
	}
	return h, ok
}

// raw is an Object based only on its bytes.
type raw []byte

// rawIf is an Object if there is one.
func rawIf(there bool, b []byte) Object {
	if !there {
		return nil
	}
	return raw(b)
}

func (r raw) head(finalizer string) head {
	h, _ := readHead(r, finalizer) // empty if there is no object
	return h
}

func (r raw) Msgpack() []byte               { return r }
func (r raw) UID() string                   { return r.head("").uid }
func (r raw) ResourceVersion() string       { return r.head("").resourceVersion }
func (r raw) Deleting() bool                { return r.head("").deleting }
func (r raw) HasFinalizer(name string) bool { return r.head(name).finalizer }
func (r raw) Annotation(string) (string, bool) {
	if r.head("").paused {
		return "true", true
	}
	return "", false
}
