// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
)

// answers are typical responses of API servers, and similar inputs.
var answers = []string{
	`{}`,
	`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"5c2f","creationTimestamp":null},"data":{"b":"2","a":"1"}}` + "\n",
	`{"spec":{"replicas":3,"ratio":0.25,"paused":false,"on":true,"big":9223372036854775807,"small":-9223372036854775808,"zero":-0},"a":[1,-1,[],{}]}`,
	`{"a":"\u003cb\u003e \" \\ \/ \b\f\n\r\t \u00e9 é 世","":"empty"}`,
	` { "a" : [ 1 , 2 ] , "b" : { } } `,
	`{"managedFields":1,"metadata":{"z":1,"managedFields":[{"f":{"b":1,"a":{"managedFields":2}}}],"a":{"managedFields":3}},"spec":{"managedFields":4}}`,
	`{"metadata":{"managedFields":[]}}`, `{"metadata":[{"managedFields":1}]}`, `{"metadata":{"metadata":{"managedFields":1},"managedFields":null}}`,
}

// odd is JSON that is decoded into a map, or is invalid.
var odd = []string{
	``, `null`, `[]`, `"a"`, `{`, `{"a"}`, `{"a":1,}`, `{"a":1 "b":2}`, `{,}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":1}x`, `{a:1}`,
	`{"metadata":{"managedFields":[}}`, `{"metadata":{"managedFields":1,}}`,
	`{"a":1,"a":2}`, `{"b":1,"a":2,"b":3}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e3}`, `{"a":+1}`, `{"a":1e400}`,
	`{"a":9223372036854775808}`, `{"a":18446744073709551615}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u+123"}`,
	`{"a":"` + "\x00" + `"}`, `{"a":"` + "\xff" + `"}`, `{"a":tru}`, `{"a":nul}`, `{"a":"`, `{"a":"\`, `{"a":"b\"}`,
	`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
}

// TestTranscoder_TakesWhatAPIServersWrite: otherwise, it would only cost time.
func TestTranscoder_TakesWhatAPIServersWrite(t *testing.T) {
	for _, js := range answers {
		if !sameBothWays(t, []byte(js)) {
			t.Errorf("not taken: %s", js)
		}
	}
	for _, js := range odd {
		if sameBothWays(t, []byte(js)) {
			t.Errorf("taken: %s", js)
		}
	}
}

// TestTranscoder_IsTheMapsWay compares both ways on random objects, with maps and arrays of the sizes at which heads
// change.
func TestTranscoder_IsTheMapsWay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 300 {
		js, err := json.Marshal(map[string]any{"a": randomJSON(rnd, 4), "z": randomJSON(rnd, 4)})
		if err != nil {
			t.Fatal(err)
		}
		if !sameBothWays(t, js) {
			t.Fatalf("not taken: %s", js)
		}
	}
	for _, n := range []int{15, 16, 255, 256, 65535, 65536} {
		var keys, list []string
		for i := range n {
			keys, list = append(keys, fmt.Sprintf(`"k%d":%d`, i, i)), append(list, "0")
		}
		js := fmt.Sprintf(`{"map":{%s},"list":[%s],%q:"key","text":%q}`, strings.Join(keys, ","), strings.Join(list, ","), strings.Repeat("k", n), strings.Repeat("x", n))
		if !sameBothWays(t, []byte(js)) {
			t.Errorf("%d entries: not taken", n)
		}
	}
}

// FuzzTranscoder: accepted input gives the same result as decoding into a map.
func FuzzTranscoder(f *testing.F) {
	for _, js := range append(answers, odd...) {
		f.Add([]byte(js))
	}
	f.Fuzz(func(t *testing.T, js []byte) { sameBothWays(t, js) })
}

// sameBothWays compares the result for accepted input with that of decoding and AppendValue, with and without
// managedFields, appended to existing bytes. It reports whether js is accepted.
func sameBothWays(t *testing.T, js []byte) bool {
	t.Helper()
	var plain, drops Transcoder
	drops.OmitManagedFields = true
	before := []byte("before")
	got, ok := plain.Append(before, js)
	dropped, also := drops.Append(before, js)
	if ok != also || !ok && (!bytes.Equal(got, before) || !bytes.Equal(dropped, before)) {
		t.Errorf("%.300s\ntaken: %t, without managedFields: %t, %.300x", js, ok, also, got)
	}
	if !ok {
		return false
	}
	var value map[string]any
	if err := utiljson.Unmarshal(js, &value); err != nil {
		t.Errorf("%.300s\nis no JSON: %v", js, err)
		return true
	}
	sameAs(t, js, got, value)
	if meta, ok := value["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	sameAs(t, js, dropped, value)
	return true
}

func sameAs(t *testing.T, js, got []byte, value map[string]any) {
	t.Helper()
	want, err := abi.AppendValue([]byte("before"), value)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%.300s\nis   %.300x\nwant %.300x, %v", js, got, want, err)
	}
}

func randomJSON(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(9); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range rnd.IntN(20) {
			m[randomText(rnd)] = randomJSON(rnd, depth-1)
		}
		return struct {
			Z any            `json:"z"`
			M map[string]any `json:"a"`
		}{randomJSON(rnd, 0), m}
	case n < 4 && depth > 0:
		list := make([]any, rnd.IntN(20))
		for i := range list {
			list[i] = randomJSON(rnd, depth-1)
		}
		return list
	case n == 5:
		return rnd.Int64() >> rnd.IntN(64) * int64(1-2*rnd.IntN(2))
	case n == 6:
		return float64(rnd.IntN(1000)) / 8
	case n == 7:
		return []any{nil, true, false}[rnd.IntN(3)]
	}
	return randomText(rnd)
}

func randomText(rnd *rand.Rand) string {
	letters := []rune("abcdefghij<>&\"\\/\n\t\u0001é世😀")
	text := make([]rune, rnd.IntN(40))
	for i := range text {
		text[i] = letters[rnd.IntN(len(letters))]
	}
	return string(text)
}

// A Transcoder can be used again, even after rejected input.
func TestTranscoder_IsReusable(t *testing.T) {
	var used Transcoder
	for _, js := range slices.Concat(answers, odd, answers) {
		got, ok := used.Append(nil, []byte(js))
		want, wantOK := new(Transcoder).Append(nil, []byte(js))
		if ok != wantOK || !bytes.Equal(got, want) {
			t.Errorf("%.100s: %x, %t, want %x, %t", js, got, ok, want, wantOK)
		}
	}
}

func BenchmarkTranscoder_Pod(b *testing.B) {
	text, err := os.ReadFile("../../runtime/reflector/testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		b.Fatal(err)
	}
	tr := Transcoder{OmitManagedFields: true}
	out := make([]byte, 0, 2*compact.Len())
	b.SetBytes(int64(compact.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := tr.Append(out, compact.Bytes()); !ok {
			b.Fatal("not taken")
		}
	}
}
