// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmctl/wasmctl/abi"
)

// maxRequest is how large a request may be.
const maxRequest = 4 << 20

// configMap is a ConfigMap, for requests.
func configMap(name string, data any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}, "data": data}
}

// hostLoops are guests that keep the host busy, by name: each call costs the guest
// nothing and the host much.
func hostLoops() map[string]*hostLoop {
	out := map[string]*hostLoop{
		"host log of maps":  reconcilerLoop("log", slices.Repeat([]byte{wasmI32}, 3), nil, []int64{8, dataAt, 1 << 16}, func() []byte { return wideMap(1 << 16) }),
		"host log of texts": reconcilerLoop("log", slices.Repeat([]byte{wasmI32}, 3), nil, []int64{8, dataAt, dataLen}, repeated("x", maxRequest)),
		"host log unread":   reconcilerLoop("log", slices.Repeat([]byte{wasmI32}, 3), nil, []int64{-4, dataAt, dataLen}, func() []byte { return wideMap(maxRequest) }),
		"host metrics":      reconcilerLoop("metric", []byte{wasmI32, wasmI32, wasmI32, wasmF64}, []byte{wasmI32}, []int64{0, dataAt, 256, 0}, repeated("m", 256)),
		"host take":         reconcilerLoop("take", slices.Repeat([]byte{wasmI32}, 3), []byte{wasmI32}, []int64{0, 0, 1 << 16}, nil),
	}
	for name, request := range requests() {
		op, _, _ := strings.Cut(name, ":")
		out[name] = hostCall(abi.Op(op), request).says(map[string]any{"capabilities": narrow()})
	}
	return out
}

func repeated(s string, n int) func() []byte {
	return func() []byte { return bytes.Repeat([]byte(s), n) }
}

func reconcilerLoop(name string, params, results []byte, args []int64, data func() []byte) *hostLoop {
	return &hostLoop{module: abi.ImportModule, name: name, params: params, results: results, args: args, data: data, pages: 1}
}

// narrow is a right to one field of ConfigMaps: each other is looked for.
func narrow() []any {
	return []any{map[string]any{
		"group": "", "resource": "configmaps", "verbs": []any{"get", "list", "create", "update", "patch"}, "fields": []any{`data["one"]`},
	}}
}

// requests are requests that are costly to read or to judge, by operation.
func requests() map[string]func() []byte {
	name := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "hostile"}
	ask := func(more func() map[string]any) func() []byte {
		return func() []byte {
			m := more()
			maps.Copy(m, name)
			return packed(m)
		}
	}
	raw := func(key string, value func() []byte) func() []byte { // a map of the name and what is packed already
		return func() []byte {
			b := packed(name)
			b[0]++
			return slices.Concat(b, packed(key), value())
		}
	}
	with := func(key string, value func() any) func() []byte {
		return ask(func() map[string]any { return map[string]any{key: value()} })
	}
	patch := func(kind string, value func() any) func() []byte {
		return ask(func() map[string]any { return map[string]any{"patchType": kind, "patch": value()} })
	}
	long := func(s string) func() any { return func() any { return strings.Repeat(s, 4_000_000/len(s)) } }
	return map[string]func() []byte{
		"api_create: empty maps":           raw("object", func() []byte { return emptyMaps(3 << 20) }),
		"api_update: wide and deep":        with("object", func() any { return configMap("hostile", wideAndDeep(20_000, 110)) }),
		"api_patch: wide and deep":         patch("merge", func() any { return map[string]any{"data": wideAndDeep(20_000, 110)} }),
		"api_patch: copy bomb":             patch("json", func() any { return copyBomb(24) }),
		"api_patch: 100,000 operations":    patch("json", func() any { return operations(100_000) }),
		"cache_list: 4 MB selector":        with("labelSelector", func() any { return selector(4_000_000) }),
		"api_list: 4 MB selector":          with("labelSelector", func() any { return selector(4_000_000) }),
		"api_list: 4 MB field selector":    with("fieldSelector", long("metadata.name=a,")),
		"cache_list: selector of one set":  with("labelSelector", func() any { return "a in (" + strings.Repeat("b,", 1_900_000) + "b)" }),
		"api_get: version of 4 MB":         with("resourceVersion", long("1")),
		"api_apply: 50,000 owners":         with("object", func() any { return owned(50_000) }),
		"api_delete: precondition of 4 MB": with("preconditions", func() any { return map[string]any{"uid": long("u")()} }),
		"event_record: note of 4 MB":       func() []byte { return packed(map[string]any{"reason": "R", "note": long("x")()}) },
		"config_get: key of 4 MB":          func() []byte { return packed(map[string]any{"key": long("x")()}) },
		"cache_get: other kinds of 4 MB": func() []byte {
			return packed(map[string]any{"apiVersion": strings.Repeat("v", 2_000_000), "kind": strings.Repeat("K", 2_000_000), "name": "x", "namespace": "default"})
		},
		"api_get: name of 4 MB": func() []byte {
			return packed(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": long("x")()})
		},
	}
}

// wideMap returns a msgpack map of size bytes: msg, and as many keys as fit.
func wideMap(size int) []byte {
	n := (size - 16) / 8
	out := binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n+1))
	out = append(out, packed("msg")...)
	out = append(out, packed("")...)
	for i := range n {
		out = append(out, packed(fmt.Sprintf("%06x", i))...)
		out = append(out, 1)
	}
	return append(out, make([]byte, max(0, size-len(out)))...)
}

// emptyMaps returns an array of n empty maps.
func emptyMaps(n int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0x81, 0xa1, 'x', 0xdd}, uint32(n)), bytes.Repeat([]byte{0x80}, n)...)
}

// wideAndDeep returns a map with many keys, nested in many others.
func wideAndDeep(width, depth int) map[string]any {
	m := map[string]any{}
	for i := range width {
		m[fmt.Sprint(i)] = map[string]any{}
	}
	for range depth {
		m = map[string]any{"d": m}
	}
	return m
}

// copyBomb is a JSON patch that doubles an object so often.
func copyBomb(times int) (patch []any) {
	patch = append(patch, map[string]any{"op": "add", "path": "/data", "value": map[string]any{"a": strings.Repeat("x", 1000)}})
	for i := range times {
		patch = append(patch, map[string]any{"op": "copy", "from": "/data", "path": fmt.Sprintf("/data/b%d", i)})
	}
	return patch
}

func operations(n int) []any {
	return slices.Repeat([]any{map[string]any{"op": "test", "path": "/data/a", "value": "x"}}, n)
}

// selector returns a label selector of size bytes.
func selector(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "k%d!=v,", i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func owned(n int) map[string]any {
	o := configMap("hostile", map[string]any{})
	o["metadata"].(map[string]any)["ownerReferences"] = slices.Repeat([]any{map[string]any{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}}, n)
	return o
}

// wasiLoops call each function that WASI has, with zeros, and with numbers so
// large that each vector and each buffer is all of memory.
func wasiLoops(tb testing.TB) map[string]*hostLoop {
	tb.Helper()
	r := wazero.NewRuntimeWithConfig(tb.Context(), wazero.NewRuntimeConfigInterpreter())
	c, err := wasi_snapshot_preview1.NewBuilder(r).Compile(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = r.Close(tb.Context()) }()
	out := map[string]*hostLoop{}
	for name, f := range c.ExportedFunctions() {
		for kind, n := range map[string]int64{"zeros": 0, "large": 1 << 17} {
			l := &hostLoop{module: wasi_snapshot_preview1.ModuleName, name: name, params: f.ParamTypes(), results: f.ResultTypes(), pages: 64}
			for range l.params {
				l.args = append(l.args, n)
			}
			out["wasi "+name+" "+kind] = l
		}
	}
	for name, l := range vectorLoops() {
		out["wasi "+name] = l
	}
	return out
}

// vectorLoops are those of WASI that take a list.
func vectorLoops() map[string]*hostLoop {
	const vectors = 250_000
	vector := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0), dataAt) // all of the first page
	clock := make([]byte, 48)
	clock[16] = 1 // monotonic
	soon, late := clock, slices.Clone(clock)
	binary.LittleEndian.PutUint64(late[24:], 1<<62) // in a hundred years
	list := func(name string, fd int64, entry []byte, n int64) *hostLoop {
		l := &hostLoop{module: wasi_snapshot_preview1.ModuleName, name: name, params: slices.Repeat([]byte{wasmI32}, 4), results: []byte{wasmI32}}
		l.data, l.pages = repeated(string(entry), int(n)), int(n)*32>>16+1
		l.args = []int64{fd, dataAt, n, 0}
		return l
	}
	polls := func(entry []byte, n int64) *hostLoop {
		l := list("poll_oneoff", dataAt, entry, n)
		l.args = []int64{dataAt, dataAt + n*48, n, 0}
		return l
	}
	return map[string]*hostLoop{
		"fd_write of vectors": list("fd_write", 1, vector, vectors),
		"fd_write to stderr":  list("fd_write", 2, vector, vectors),
		"fd_read of vectors":  list("fd_read", 0, vector, vectors),
		"fd_pread of vectors": {module: wasi_snapshot_preview1.ModuleName, name: "fd_pread", params: []byte{wasmI32, wasmI32, wasmI32, wasmI64, wasmI32}, results: []byte{wasmI32}, args: []int64{0, dataAt, vectors, 0, 0}, data: repeated(string(vector), vectors)},
		"path_open of a long path": {
			module: wasi_snapshot_preview1.ModuleName, name: "path_open", params: []byte{wasmI32, wasmI32, wasmI32, wasmI32, wasmI32, wasmI64, wasmI64, wasmI32, wasmI32},
			results: []byte{wasmI32}, args: []int64{3, 0, dataAt, 4096, 0, 0, 0, 0, 0}, data: repeated("a/../", 1000),
		},
		"poll_oneoff of one":        polls(soon, 1),
		"poll_oneoff that sleeps":   polls(late, 1),
		"poll_oneoff of 80,000":     polls(soon, 80_000),
		"poll_oneoff, 80,000 sleep": polls(late, 80_000),
		"random_get of 8 MiB":       {module: wasi_snapshot_preview1.ModuleName, name: "random_get", params: []byte{wasmI32, wasmI32}, results: []byte{wasmI32}, args: []int64{0, 8 << 20}, pages: 128},
	}
}

// hostAttacks are those of hostLoops and vectorLoops: each would go on for ever.
func hostAttacks() (out []attack) {
	loops := vectorLoops()
	maps.Copy(loops, hostLoops())
	for _, name := range slices.Sorted(maps.Keys(loops)) {
		a := attack{guest: name, bytes: loops[name].bytes, kind: abi.FailureTimeout, message: "exceeded its time limit (timeout 150ms)"}
		a.limits.Timeout = spinning
		if strings.Contains(name, "api_") {
			a.api = clusterAPI
		}
		out = append(out, a)
	}
	return out
}
