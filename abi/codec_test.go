// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
)

// randomValue builds a value of the types that DecodeValue returns.
func randomValue(r *rand.Rand, depth int) any {
	n := 8
	if depth > 4 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		return r.NormFloat64()
	case 4, 5:
		return strings.Repeat("é", r.IntN(1<<r.IntN(9)))
	case 6:
		a := make([]any, r.IntN(1<<r.IntN(5)))
		for i := range a {
			a[i] = randomValue(r, depth+1)
		}
		return a
	}
	m := map[string]any{}
	for range r.IntN(1 << r.IntN(5)) {
		m[strings.Repeat("k", r.IntN(40))] = randomValue(r, depth+1)
	}
	return m
}

// TestValue_RoundTripsAndAgreesWithTheLibrary holds the codec against
// vmihailenco/msgpack on random values, in both directions.
func TestValue_RoundTripsAndAgreesWithTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := randomValue(r, 0)
		ours, err := AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeValue(ours)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, back); diff != "" {
			t.Fatalf("value changed (-want +got):\n%s", diff)
		}
		theirs, err := encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Fatalf("%#v:\nours   %x\ntheirs %x", v, ours, theirs)
		}
	}
}

func TestDecodeValue_NormalisesNumbers(t *testing.T) {
	for _, v := range []any{int8(-3), int16(-3), int32(-3), int64(-3)} {
		b, _ := msgpack.Marshal(v)
		if got, err := DecodeValue(b); got != int64(-3) || err != nil {
			t.Errorf("%T: %v (%T), %v", v, got, got, err)
		}
	}
	for _, v := range []any{uint8(200), uint16(200), uint32(200), uint64(200)} {
		b, _ := msgpack.Marshal(v)
		if got, err := DecodeValue(b); got != int64(200) || err != nil {
			t.Errorf("%T: %v (%T), %v", v, got, got, err)
		}
	}
	b, _ := msgpack.Marshal(float32(1.5))
	if got, err := DecodeValue(b); got != 1.5 || err != nil {
		t.Errorf("float32: %v (%T), %v", got, got, err)
	}
	for _, edge := range []int64{math.MinInt64, math.MinInt32, -129, -128, -33, -32, -1, 0, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64} {
		b, err := AppendValue(nil, edge)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeValue(b); got != edge || err != nil {
			t.Errorf("%d: got %v, %v", edge, got, err)
		}
	}
}

func TestDecode_RefusesAKeyTwice(t *testing.T) {
	_, err := DecodeValue([]byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2})
	if !errors.Is(err, ErrType) {
		t.Errorf("value: %v", err)
	}
	for n := range 20 {
		msg := AppendMapHead(nil, n+2)
		for i := range n + 1 {
			msg = append(appendString(msg, strings.Repeat("k", i)), 0xc0)
		}
		if _, err := DecodeResult(msg[:1]); err == nil {
			t.Errorf("%d keys: a map that ends too early was accepted", n)
		}
		msg = append(appendString(msg, strings.Repeat("k", n)), 0xc0)
		if _, err := DecodeResult(msg); !errors.Is(err, ErrType) {
			t.Errorf("result with %d keys: %v", n+2, err)
		}
		if _, _, err := DecodeRequest[APIRequest](msg); !errors.Is(err, ErrType) {
			t.Errorf("request with %d keys: %v", n+2, err)
		}
	}
}

func TestCheck_NamesWhatIsWrong(t *testing.T) {
	for want, b := range map[error][]byte{
		ErrTruncated: {0xd9, 5, 'a'},
		ErrTrailing:  {0xc0, 0xc0},
		ErrType:      {0xc4, 0},
		ErrTooDeep:   append(bytes.Repeat([]byte{0x91}, MaxDepth+1), 0xc0),
		ErrTooLarge:  make([]byte, MaxBytes+1),
	} {
		if err := Check(b); !errors.Is(err, want) {
			t.Errorf("want %v, got %v", want, err)
		}
	}
	if err := Check(append(bytes.Repeat([]byte{0x91}, MaxDepth), 0xc0)); err != nil {
		t.Errorf("nesting of exactly MaxDepth: %v", err)
	}
}

// TestAppendValue_WritesOnlyWhatCheckAccepts covers the cases in which writer and reader could disagree.
func TestAppendValue_WritesOnlyWhatCheckAccepts(t *testing.T) {
	nested := func(n int) any {
		v := any(nil)
		for range n {
			v = []any{v}
		}
		return v
	}
	b, err := AppendValue(nil, nested(MaxDepth))
	if err != nil || Check(b) != nil {
		t.Errorf("MaxDepth: %v, %v", err, Check(b))
	}
	if _, err := AppendValue(nil, nested(MaxDepth+1)); !errors.Is(err, ErrTooDeep) {
		t.Errorf("MaxDepth+1: %v", err)
	}
	for _, v := range []any{math.NaN(), math.Inf(1), uint64(math.MaxUint64), struct{}{}, []byte("x")} {
		if _, err := AppendValue(nil, v); !errors.Is(err, ErrType) {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// The most frequent result allocates nothing, and is decoded correctly.
func TestDecodeResult_AwaitingAllocatesNothing(t *testing.T) {
	msg := []byte(awaiting)
	v, err := DecodeValue(msg)
	if diff := cmp.Diff(any(map[string]any{"action": "await"}), v); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if n := testing.AllocsPerRun(100, func() {
		if res, err := DecodeResult(msg); err != nil || res.Action.Requeue {
			t.Errorf("%+v %v", res, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecodeResult(t *testing.T) {
	for name, c := range map[string]struct {
		msg  any
		want Result
	}{
		"empty map awaits":                {map[string]any{}, Result{}},
		"await":                           {map[string]any{"action": "await", "after_ms": int64(5)}, Result{}},
		"requeue":                         {map[string]any{"action": "requeue", "after_ms": int64(5)}, Result{Action: Action{Requeue: true, After: 5 * time.Millisecond}}},
		"requeue at once":                 {map[string]any{"action": "requeue"}, Result{Action: Action{Requeue: true}}},
		"rule 18: error beats a requeue":  {map[string]any{"action": "requeue", "error": map[string]any{"message": "m"}}, Result{Error: &ResultError{Class: ErrorTransient, Message: "m"}}},
		"unknown class is transient":      {map[string]any{"error": map[string]any{"class": "new"}}, Result{Error: &ResultError{Class: ErrorTransient}}},
		"unknown keys are ignored, named": {map[string]any{"later": []any{int64(1)}}, Result{Unknown: []string{"later"}}},
		"a far requeue is clamped":        {map[string]any{"action": "requeue", "after_ms": int64(math.MaxInt64)}, Result{Action: Action{Requeue: true, After: time.Duration(math.MaxInt64/int64(time.Millisecond)) * time.Millisecond}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeResult(mustValue(c.msg))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, msg := range map[string]any{
		"unknown action":   map[string]any{"action": "explode"},
		"negative after":   map[string]any{"action": "requeue", "after_ms": int64(-1)},
		"action no string": map[string]any{"action": int64(1)},
		"error no map":     map[string]any{"error": "x"},
		"no map":           []any{},
	} {
		if _, err := DecodeResult(mustValue(msg)); !errors.Is(err, ErrType) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResult_RoundTrips tests every result that a host can express.
func TestResult_RoundTrips(t *testing.T) {
	for _, r := range []Result{
		{},
		{Action: Action{Requeue: true, After: time.Hour}},
		{Error: &ResultError{Class: ErrorPermanent, Message: "m", Reason: "R", After: time.Second}},
	} {
		got, err := DecodeResult(AppendResult(nil, &r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestDecodeManifest_RoundTripsAndValidates(t *testing.T) {
	msg := mustManifest()
	m, unknown, err := DecodeManifest(msg)
	if err != nil || len(unknown) != 0 {
		t.Fatal(err, unknown)
	}
	again, err := EncodeManifest(m)
	if err != nil || !bytes.Equal(msg, again) {
		t.Errorf("encoding changed: %v\n%x\n%x", err, msg, again)
	}
	_, _, err = DecodeManifest(mustValue(map[string]any{
		"abi": int64(2), "for": map[string]any{}, "capabilities": []any{map[string]any{}}, "concurrency": int64(-1), "limits": map[string]any{"memory": int64(-1)},
	}))
	for _, want := range []string{"version 2", "for: kind", "capabilities[0]", "concurrency", "limits"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q: %v", want, err)
		}
	}
	if _, unknown, err := DecodeManifest(mustValue(map[string]any{"name": "x", "colour": "red"})); err != nil || !cmp.Equal(unknown, []string{"colour"}) {
		t.Errorf("unknown keys: %v, %v", unknown, err)
	}
}

func TestPackResult_KeepsTheSign(t *testing.T) {
	for _, s := range []Status{0, 404, 599, StatusUnsupported, StatusInternal, math.MinInt32} {
		gs, n := UnpackResult(PackResult(s, math.MaxUint32))
		if gs != s || n != math.MaxUint32 {
			t.Errorf("%d: got %d, %d", s, gs, n)
		}
	}
	if PackResult(404, 16) != 1735166787600 || int64(PackResult(StatusDenied, 16)) != -8589934576 || PackPointer(16, 3) != 68719476739 { //nolint:gosec // the example of ABI.md
		t.Error("the worked examples of ABI.md do not hold")
	}
}

func TestAppendRequestHead_AllocatesNothing(t *testing.T) {
	req := &Request{ID: "a-1", Controller: "c", Attempt: 1, Key: Key{"ns", "n"}, Object: []byte{0x80}, Caps: []string{"api_get"}}
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { AppendRequestHead(buf, req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
