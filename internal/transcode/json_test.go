// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
)

// packedSeeds are msgpack values: valid, unusual and invalid ones.
func packedSeeds(t testing.TB) (seeds [][]byte) {
	rnd := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	for range 100 {
		js, err := json.Marshal(map[string]any{"b": randomJSON(rnd, 4), "a": randomJSON(rnd, 4), "f": rnd.Float64() * 1e-9})
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := utiljson.Unmarshal(js, &v); err != nil {
			t.Fatal(err)
		}
		b, err := abi.AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	for _, b := range []string{
		"", "\xc0", "\xc1", "\x91", "\x81\xa1a", "\x81\x01\x02", "\x82\xa1b\x01\xa1a\x02", "\x82\xa1a\x01\xa1a\x02", "\x83\xa1a\x01\xa1b\x02\xa1a\x03",
		"\xc0\xc0", "\xca\x3f\xc0\x00\x00", "\xca\x7f\x80\x00\x00", "\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xd0\x80", "\xd1\xff\x00",
		"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "\xe0", "\xa1\xff", "\xc4\x01a", "\xc7\x02\x01{}", "\xc7\x0d\x01{\"a\":1,\"a\":2}", "\xc7\x02\x02{}", "\xc7\x02\x01}{",
		strings.Repeat("\x91", abi.MaxDepth) + "\xc0", strings.Repeat("\x91", abi.MaxDepth+1) + "\xc0", "\xdd\xff\xff\xff\xff",
	} {
		seeds = append(seeds, []byte(b))
	}
	return seeds
}

// FuzzAppendJSON: AppendJSON accepts a value if and only if abi.DecodeValue does, and both give equal values.
func FuzzAppendJSON(f *testing.F) {
	for _, b := range packedSeeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want, err := abi.DecodeValue(b)
		js, ok := AppendJSON([]byte("head"), b)
		if ok != (err == nil) || !strings.HasPrefix(string(js), "head") || !ok && len(js) != 4 {
			t.Fatalf("%x: %q, %t; DecodeValue: %v", b, js, ok, err)
		}
		if !ok {
			return
		}
		var got any
		if err := utiljson.Unmarshal(js[4:], &got); err != nil {
			t.Fatalf("%x: %s: %v", b, js[4:], err)
		}
		encoded, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var again any
		if err := utiljson.Unmarshal(encoded, &again); err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%x: %s, want %s", b, js[4:], encoded)
		}
	})
}

func BenchmarkAppendJSON_Pod(b *testing.B) {
	text, err := os.ReadFile("../../runtime/reflector/testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	var tr Transcoder
	pod, ok := tr.Append(nil, text)
	if !ok {
		b.Fatal("not taken")
	}
	var out []byte
	b.SetBytes(int64(len(pod)))
	b.ReportAllocs()
	for b.Loop() {
		if out, ok = AppendJSON(out[:0], pod); !ok {
			b.Fatal("not taken")
		}
	}
}
