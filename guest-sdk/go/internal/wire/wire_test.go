// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const goldenDir = "../../../../abi/testdata"

// goldens returns the golden messages whose name starts with prefix.
func goldens(t testing.TB, prefix string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(goldenDir, prefix+"*.msgpack"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden messages %s* in %s: %v", prefix, goldenDir, err)
	}
	msgs := map[string][]byte{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		msgs[strings.TrimSuffix(filepath.Base(file), ".msgpack")] = b
	}
	return msgs
}

func must(t testing.TB, v any) []byte {
	t.Helper()
	b, err := Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCheck_RefusesTheBadGoldenMessages(t *testing.T) {
	for name, msg := range goldens(t, "bad-") {
		// bad-array is a valid value, but not a valid message.
		if _, err := Decode(msg); err == nil && (name != "bad-array" || TypeOf(msg) != Array) {
			t.Errorf("%s: was not refused", name)
		}
	}
}

func TestDecode_ReadsGoldenMessagesAsTheirJSONShows(t *testing.T) {
	for name, msg := range goldens(t, "") {
		if strings.HasPrefix(name, "bad-") {
			continue
		}
		js, err := os.ReadFile(filepath.Join(goldenDir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(msg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want, have any
		viaJSON, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(js, &want), json.Unmarshal(viaJSON, &have)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%s: got %v, want %v", name, have, want)
		}
	}
}

// TestAppend_WritesTheHostsBytes: both sides sort keys and use the shortest
// forms, so an object that was read and is sent again has equal bytes.
func TestAppend_WritesTheHostsBytes(t *testing.T) {
	for name, msg := range goldens(t, "api-apply") {
		v, err := Decode(msg)
		if err != nil {
			t.Fatal(err)
		}
		obj := Trim(Get(msg, "object"))
		m, _ := v.(map[string]any)
		if got := must(t, m["object"]); !bytes.Equal(got, obj) {
			t.Errorf("%s: object is written as %x, want %x", name, got, obj)
		}
	}
}

func TestInt_EdgesSurviveTheRoundTripInTheShortestForm(t *testing.T) {
	sizes := map[int64]int{
		0: 1, 127: 1, 128: 2, 255: 2, 256: 3, 65535: 3, 65536: 5, math.MaxUint32: 5, math.MaxUint32 + 1: 9, math.MaxInt64: 9,
		-1: 1, -32: 1, -33: 2, -128: 2, -129: 3, math.MinInt16: 3, math.MinInt16 - 1: 5, math.MinInt32: 5, math.MinInt32 - 1: 9, math.MinInt64: 9,
	}
	for want, size := range sizes {
		b := AppendInt(nil, want)
		got, ok := ReadInt(b)
		if !ok || got != want || len(b) != size {
			t.Errorf("%d: read as %d (%v) from %d bytes, want %d bytes", want, got, ok, len(b), size)
		}
		if end := Skip(b, 0); end != len(b) {
			t.Errorf("%d: skipped to %d of %d", want, end, len(b))
		}
	}
}

func TestReadInt_TakesWholeFloatsAndSignedForms(t *testing.T) {
	cases := []struct {
		msg  []byte
		want int64
		ok   bool
	}{
		{AppendFloat(nil, 3), 3, true},
		{AppendFloat(nil, 3.5), 0, false},
		{AppendFloat(nil, math.MaxInt64), 0, false}, // is 2^63
		{AppendFloat(nil, math.MinInt64), math.MinInt64, true},
		{AppendFloat(nil, math.NaN()), 0, false},
		{[]byte{0xd0, 0x05}, 5, true}, // a longer form than necessary
		{[]byte{0xd3, 0, 0, 0, 0, 0, 0, 0, 7}, 7, true},
		{[]byte{0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0}, 0, false},
		{[]byte{0xca, 0x40, 0x40, 0, 0}, 3, true},
		{[]byte{0xcd, 1}, 0, false},
		{AppendString(nil, "1"), 0, false},
	}
	for _, c := range cases {
		if got, ok := ReadInt(c.msg); ok != c.ok || ok && got != c.want {
			t.Errorf("%x: %d, %v; want %d, %v", c.msg, got, ok, c.want, c.ok)
		}
	}
}

func TestString_LengthsAtTheEdgesOfTheirForms(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 255, 256, 65535, 65536} {
		want := strings.Repeat("x", n)
		b := append(AppendString(nil, want), 0xc0)
		got, ok := StringBytes(b)
		if !ok || string(got) != want || Skip(b, 0) != len(b)-1 {
			t.Errorf("length %d: read %d bytes, %v", n, len(got), ok)
		}
	}
}

func TestCheck_RefusesWhatMustNotCrossTheWall(t *testing.T) {
	deep := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }
	cases := []struct {
		name string
		msg  []byte
		want error
	}{
		{"deepest", deep(MaxDepth), nil},
		{"too deep", deep(MaxDepth + 1), ErrTooDeep},
		{"empty", nil, ErrTruncated},
		{"trailing", []byte{0xc0, 0xc0}, ErrTrailing},
		{"key", []byte{0x81, 0x01, 0xc0}, ErrType},
		{"truncated key", []byte{0x81, 0xa3, 'a'}, ErrTruncated},
		{"binary", []byte{0xc4, 0}, ErrType},
		{"infinity", AppendFloat(nil, math.Inf(1)), ErrNumber},
		{"uint64", []byte{0xcf, 0xff, 0, 0, 0, 0, 0, 0, 0}, ErrNumber},
		{"utf8", []byte{0xa1, 0xff}, ErrUTF8},
		{"long", make([]byte, MaxBytes+1), ErrTooLarge},
	}
	for _, c := range cases {
		if err := Check(c.msg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := Decode([]byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("key twice: %v", err)
	}
}

// random returns a value of the Go types of JSON.
func random(rnd *rand.Rand, depth int) any {
	n := 8
	if depth == 0 {
		n = 6
	}
	switch rnd.Intn(n) {
	case 0:
		return nil
	case 1:
		return rnd.Intn(2) == 0
	case 2:
		return rnd.Int63() >> rnd.Intn(63)
	case 3:
		return -rnd.Int63() >> rnd.Intn(63)
	case 4:
		return rnd.NormFloat64()
	case 5:
		return strings.Repeat("ä", rnd.Intn(40))
	case 6:
		list := make([]any, rnd.Intn(20))
		for i := range list {
			list[i] = random(rnd, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for i := rnd.Intn(20); i > 0; i-- {
		m["k"+strconv.Itoa(rnd.Intn(30))] = random(rnd, depth-1)
	}
	return m
}

// walk compares every path of v with the result of At.
func walk(t testing.TB, msg []byte, v any, path []string) {
	t.Helper()
	at := Trim(At(msg, path))
	if got, err := Decode(at); err != nil || !reflect.DeepEqual(got, v) {
		t.Fatalf("at %v: %v, %v; want %v", path, got, err, v)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if At(msg, append(path, "missing")) != nil {
		t.Fatalf("at %v: found a key that is not there", path)
	}
	for k, e := range m {
		walk(t, msg, e, append(path, k))
	}
}

func TestAt_AgreesWithAFullDecodeOfRandomValues(t *testing.T) {
	for seed := range int64(300) {
		v := random(rand.New(rand.NewSource(seed)), 4)
		walk(t, must(t, v), v, nil)
	}
}

// FuzzWire compares the readers with a complete decoder: they never panic, and
// agree with it on valid messages.
func FuzzWire(f *testing.F) {
	for _, msg := range goldens(f, "") {
		f.Add(msg)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		v, err := Decode(msg)
		if err == nil {
			walk(t, msg, v, nil)
			if end := Skip(msg, 0); end != len(msg) {
				t.Fatalf("skipped to %d of %d", end, len(msg))
			}
			again := must(t, v)
			if back, err := Decode(again); err != nil || !reflect.DeepEqual(back, v) {
				t.Fatalf("%v is written as %x, which is read as %v, %v", v, again, back, err)
			}
		}
		// None of these may panic, loop or read past the end.
		if end := Skip(msg, 0); end > len(msg) {
			t.Fatalf("skipped to %d of %d", end, len(msg))
		}
		for it := Walk(msg); it.Next(); {
			_ = At(it.Value, []string{"a", "b"})
		}
		ReadInt(msg)
		ReadFloat(msg)
		StringBytes(msg)
	})
}

// FuzzDecodeInto tests the decoder of structs with invalid input.
func FuzzDecodeInto(f *testing.F) {
	for _, msg := range goldens(f, "") {
		f.Add(msg)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		var all any
		wantErr := Check(msg)
		if err := DecodeInto(msg, &all); wantErr == nil && err != nil && !errors.Is(err, ErrDuplicate) {
			t.Fatalf("good message: %v", err)
		}
		var typed sample
		_ = DecodeInto(msg, &typed)
	})
}
