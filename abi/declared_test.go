// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeResult_Declared(t *testing.T) {
	child := map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "b"}}
	packed := mustValue(child)
	message := map[string]any{"message": "m"}
	for name, c := range map[string]struct {
		msg  map[string]any
		want Result
	}{
		"children in their order": {
			map[string]any{"apply": []any{child, map[string]any{}}, "action": "requeue"},
			Result{Action: Action{Requeue: true}, Declared: &Declared{Apply: [][]byte{packed, {0x80}}}},
		},
		"prune alone deletes all":        {map[string]any{"prune": true}, Result{Declared: &Declared{Prune: true}}},
		"prune with an empty list":       {map[string]any{"prune": true, "apply": []any{}}, Result{Declared: &Declared{Prune: true}}},
		"status alone":                   {map[string]any{"status": child}, Result{Declared: &Declared{Status: packed}}},
		"force with children":            {map[string]any{"apply": []any{child}, "force": true}, Result{Declared: &Declared{Apply: [][]byte{packed}, Force: true}}},
		"nothing declared":               {map[string]any{"apply": []any{}, "prune": false, "force": true}, Result{}},
		"nil stands for an absent key":   {map[string]any{"apply": nil, "prune": nil, "force": nil, "status": nil, "action": nil, "after_ms": nil, "error": nil}, Result{}},
		"status beside an error":         {map[string]any{"error": message, "status": child}, Result{Error: &ResultError{Class: ErrorTransient, Message: "m"}, Declared: &Declared{Status: packed}}},
		"empty declared with an error":   {map[string]any{"error": message, "apply": []any{}, "prune": false}, Result{Error: &ResultError{Class: ErrorTransient, Message: "m"}}},
		"an empty status is a status":    {map[string]any{"status": map[string]any{}}, Result{Declared: &Declared{Status: []byte{0x80}}}},
		"nil in an error is its nothing": {map[string]any{"error": map[string]any{"class": nil, "reason": nil, "after_ms": nil}}, Result{Error: &ResultError{Class: ErrorTransient}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeResult(mustValue(c.msg))
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDecodeResult_RefusesWhatCannotBeDeclared(t *testing.T) {
	message := map[string]any{"message": "m"}
	for name, msg := range map[string]map[string]any{
		"children beside an error": {"error": message, "apply": []any{map[string]any{}}},
		"prune beside an error":    {"error": message, "prune": true},
		"force beside an error":    {"force": true, "error": message},
		"a child that is nil":      {"apply": []any{nil}},
		"a child that is a string": {"apply": []any{"x"}},
		"children in a map":        {"apply": map[string]any{}},
		"status that is a list":    {"status": []any{}},
		"prune that is a number":   {"prune": int64(1)},
		"too many children":        {"apply": make([]any, MaxItems+1)},
	} {
		if _, err := DecodeResult(mustValue(msg)); !errors.Is(err, ErrType) {
			t.Errorf("%s: %v", name, err)
		}
	}
	head := []byte("\x81\xa5apply\x91\x81\xa1a") // three maps and lists around the following bytes
	for n, want := range map[int]error{MaxDepth - 3: nil, MaxDepth - 2: ErrTooDeep} {
		msg := append(append(bytes.Clone(head), bytes.Repeat([]byte{0x91}, n)...), 0xc0)
		if _, err := DecodeResult(msg); !errors.Is(err, want) {
			t.Errorf("%d lists in a child: %v, want %v", n, err, want)
		}
	}
}

// The guest's memory is reused, so the declared objects must be copies.
func TestDecodeResult_DeclaredOutlivesTheMessage(t *testing.T) {
	want := Result{Declared: &Declared{Apply: [][]byte{mustValue(testObject)}, Status: mustValue(map[string]any{"ready": true})}}
	msg := AppendResult(nil, &want)
	got, err := DecodeResult(msg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range msg {
		msg[i] = 0xc1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// DecodeResult decodes every valid result that AppendResult writes.
func TestResult_RoundTripsWithDeclared(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var want Result
		d := &Declared{Force: rnd.IntN(2) == 0, Prune: rnd.IntN(2) == 0}
		for range rnd.IntN(20) {
			d.Apply = append(d.Apply, mustValue(map[string]any{"n": int64(rnd.IntN(1000))}))
		}
		if rnd.IntN(2) == 0 {
			d.Status = mustValue(map[string]any{"s": int64(rnd.IntN(1000))})
		}
		switch rnd.IntN(3) {
		case 0:
			want.Action = Action{Requeue: true, After: time.Duration(rnd.IntN(1000)) * time.Millisecond}
		case 1:
			want.Error = &ResultError{Class: ErrorConflict, Message: "m", After: time.Second}
			d = &Declared{Status: d.Status}
		}
		if !d.Empty() {
			want.Declared = d
		}
		got, err := DecodeResult(AppendResult(nil, &want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestAppendEventHead_SplitsWhereTheObjectsGo(t *testing.T) {
	objects := [][]byte{nil, mustValue(testObject), {0x80}}
	for _, before := range objects {
		for _, after := range objects {
			e := &Event{Controller: "c", Group: "g", Version: "v1", Kind: "K", Type: EventUpdated, Key: Key{"ns", "n"}, Old: before, New: after}
			head, split := AppendEventHead([]byte("prefix"), e)
			joined := bytes.Join([][]byte{head[:split], before, head[split:], after}, nil)
			if whole := AppendEvent([]byte("prefix"), e); !bytes.Equal(joined, whole) {
				t.Fatalf("parts and whole differ:\n%x\n%x", joined, whole)
			}
			m, err := DecodeObject(joined[len("prefix"):])
			if err != nil {
				t.Fatal(err)
			}
			_, hasOld := m["old"]
			_, hasNew := m["new"]
			if hasOld != (before != nil) || hasNew != (after != nil) {
				t.Errorf("got %v", m)
			}
		}
	}
	e := &Event{Controller: "c", Kind: "K", Key: Key{"ns", "n"}, Old: []byte{0x80}, New: []byte{0x80}}
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { AppendEventHead(buf, e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecodeMapResult(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), maxName+1))
	key := func(k map[string]any) []byte { return mustValue(map[string]any{"keys": []any{k}}) }
	for name, c := range map[string]struct {
		msg  []byte
		want MapResult
	}{
		"empty message":         {nil, MapResult{}},
		"no keys":               {mustValue(map[string]any{"keys": nil}), MapResult{}},
		"cluster-scoped":        {key(map[string]any{"name": "a", "namespace": nil, "uid": "later"}), MapResult{Keys: []Key{{Name: "a"}}}},
		"an error beats keys":   {mustValue(map[string]any{"keys": []any{map[string]any{"name": "a"}}, "error": map[string]any{"message": "m"}}), MapResult{Error: &ResultError{Class: ErrorTransient, Message: "m"}}},
		"unknown keys are told": {mustValue(map[string]any{"more": int64(1)}), MapResult{Unknown: []string{"more"}}},
	} {
		got, err := DecodeMapResult(c.msg)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for name, msg := range map[string][]byte{
		"no name":        key(map[string]any{"namespace": "ns"}),
		"long name":      key(map[string]any{"name": long}),
		"long namespace": key(map[string]any{"name": "a", "namespace": long}),
		"keys in a map":  mustValue(map[string]any{"keys": map[string]any{}}),
		"key is nil":     mustValue(map[string]any{"keys": []any{nil}}),
		"too many":       mustValue(map[string]any{"keys": make([]any, MaxItems+1)}),
		"no map":         mustValue([]any{}),
	} {
		if _, err := DecodeMapResult(msg); !errors.Is(err, ErrType) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DecodeMapResult(make([]byte, MaxBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestDecodeConfigureResult(t *testing.T) {
	for name, msg := range map[string][]byte{"empty": nil, "empty map": {0x80}, "nil error": mustValue(map[string]any{"error": nil})} {
		if refusal, _, err := DecodeConfigureResult(msg); refusal != nil || err != nil {
			t.Errorf("%s: %v, %v", name, refusal, err)
		}
	}
	refusal, unknown, err := DecodeConfigureResult(mustValue(map[string]any{"error": map[string]any{"message": "no"}, "later": true}))
	if err != nil || refusal == nil || refusal.Message != "no" || !cmp.Equal(unknown, []string{"later"}) {
		t.Errorf("%v, %v, %v", refusal, unknown, err)
	}
	if _, _, err := DecodeConfigureResult([]byte{0x90}); !errors.Is(err, ErrType) {
		t.Errorf("no map: %v", err)
	}
}

func TestDecodeEventRequest_ReadsWhatAnSDKWrites(t *testing.T) {
	want := EventRequest{Type: "Warning", Reason: "R", Note: "n", Regarding: &EventObject{APIVersion: "v1", Kind: "Pod", Name: "p"}}
	b, err := encode(&want)
	if err != nil {
		t.Fatal(err)
	}
	got, unknown, err := DecodeRequest[EventRequest](b)
	if diff := cmp.Diff(want, got); err != nil || unknown != nil || diff != "" {
		t.Errorf("%v %v %s", err, unknown, diff)
	}
	if _, _, err := DecodeRequest[EventRequest]([]byte{0x81, 0xa6, 'r', 'e', 'a', 's', 'o', 'n', 1}); err == nil {
		t.Error("a reason that is a number was accepted")
	}
}
