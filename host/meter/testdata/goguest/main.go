// SPDX-License-Identifier: Apache-2.0

// Command goguest is a guest for benchmarks, built with
// GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
package main

import (
	"encoding/json"
	"sort"
)

func main() {}

var doc = func() []byte {
	labels := map[string]string{}
	var containers []any
	for i := range 12 {
		name := "container-" + string(rune('a'+i))
		labels["app.kubernetes.io/"+name] = name
		containers = append(containers, map[string]any{
			"name": name, "image": "registry/" + name + ":v1.2.3", "replicas": i, "ready": i%2 == 0,
			"env":   []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": name}},
			"ports": []any{map[string]any{"containerPort": 8080 + i, "protocol": "TCP"}},
		})
	}
	b, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": "n", "labels": labels}, "spec": map[string]any{"containers": containers},
	})
	if err != nil {
		panic(err)
	}
	return b
}()

//go:wasmexport json
func decodeEncode(n int32) int64 {
	var sum int64
	for range n {
		var v map[string]any
		if err := json.Unmarshal(doc, &v); err != nil {
			panic(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		sum += int64(len(b))
	}
	return sum
}

//go:wasmexport sort
func sortNumbers(n int32) int64 {
	s := make([]int, n)
	x := uint32(1)
	for i := range s {
		x = x*1664525 + 1013904223
		s[i] = int(x >> 8)
	}
	sort.Ints(s)
	return int64(s[n/2])
}

type shape interface{ area() int64 }
type square struct{ a int64 }
type rect struct{ a, b int64 }

func (s square) area() int64 { return s.a * s.a }
func (r rect) area() int64   { return r.a * r.b }

//go:wasmexport loop
func loop(n int32) int64 {
	shapes := []shape{square{3}, rect{4, 5}, square{6}}
	var sum int64
	for i := range n {
		sum += shapes[int(i)%len(shapes)].area()
	}
	return sum
}
