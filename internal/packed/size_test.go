// SPDX-License-Identifier: Apache-2.0

package packed_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// TestMeasure_IsAboutWhatDecodingTakes for values that take the most memory relative to their size, and for typical
// ones.
func TestMeasure_IsAboutWhatDecodingTakes(t *testing.T) {
	list := func(n int, item func(i int) any) any {
		out := make([]any, n)
		for i := range out {
			out[i] = item(i)
		}
		return out
	}
	wide := map[string]any{}
	for i := range 50_000 {
		wide[fmt.Sprint("key", i)] = i
	}
	for name, v := range map[string]any{
		"empty maps":  list(100_000, func(int) any { return map[string]any{} }),
		"small maps":  list(50_000, func(int) any { return map[string]any{"a": 1} }),
		"empty lists": list(100_000, func(int) any { return []any{} }),
		"numbers":     list(100_000, func(i int) any { return i }),
		"nulls":       list(100_000, func(int) any { return nil }),
		"texts":       list(50_000, func(i int) any { return fmt.Sprint("a text of a length ", i) }),
		"a long text": strings.Repeat("x", 1<<20),
		"wide":        wide,
		"containers": list(5_000, func(i int) any {
			return map[string]any{"name": fmt.Sprint("c", i), "image": "registry/image:1", "env": []any{map[string]any{"name": "A", "value": "b"}}}
		}),
	} {
		b, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decoded, err := abi.DecodeValue(b)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		took := int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // small
		if _, got := packed.Measure(b); got < took*2/3 || got > took*5/2 {
			t.Errorf("%s: %d bytes decode into %d, measured are %d", name, len(b), took, got)
		}
		runtime.KeepAlive(decoded)
		js, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&before)
		err = utiljson.Unmarshal(js, &decoded)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		took = int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // small
		if got := packed.MeasureJSON(js); got < took*1/3 || got > took*4 {
			t.Errorf("%s: %d bytes of JSON decode into %d, measured are %d", name, len(js), took, got)
		}
		runtime.KeepAlive(decoded)
	}
}

// TestMeasureJSON_SkipsTexts: JSON within a string is not measured as JSON.
func TestMeasureJSON_SkipsTexts(t *testing.T) {
	for _, inner := range []string{`[{},{},{}]`, `\"{[,`, `{`, `"`} {
		text, err := json.Marshal(strings.Repeat(inner, 100))
		if err != nil {
			t.Fatal(err)
		}
		if got, most := packed.MeasureJSON(text), int64(len(text)+100); got > most {
			t.Errorf("%s: %d, want at most %d", inner, got, most)
		}
	}
	for _, bad := range []string{"", `"`, `"\\`, `{"a`, `[[[`} {
		packed.MeasureJSON([]byte(bad)) // does not panic
	}
}

func TestMeasure_CountsValuesAndKeys(t *testing.T) {
	for want, v := range map[int]any{1: nil, 2: []any{1}, 3: map[string]any{"a": "b"}, 10: map[string]any{"a": []any{1, 2, map[string]any{"b": nil, "c": true}}}} {
		b, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := packed.Measure(b); got != want {
			t.Errorf("%v: %d, want %d", v, got, want)
		}
	}
	for _, bad := range []string{"", "\xc1", "\x92\x01", "\xdf\xff\xff\xff\xff", "\x91\xc1"} {
		if values, _ := packed.Measure([]byte(bad)); values > len(bad) {
			t.Errorf("%x: %d values", bad, values)
		}
	}
}
