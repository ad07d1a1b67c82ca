// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func Example() {
	app := func(generation int64, phase string) *reflector.Object {
		o, err := reflector.Pack(map[string]any{
			"metadata": map[string]any{"name": "web", "uid": "1", "generation": generation},
			"status":   map[string]any{"phase": phase},
		}, reflector.Options{})
		if err != nil {
			panic(err)
		}
		return o
	}
	filter, err := predicate.Parse([]string{"generation", "labels", "ttl=never"}, predicate.Options{})
	if err != nil {
		panic(err)
	}
	status := reflector.Event{Type: reflector.Applied, Old: app(1, "Pending"), New: app(1, "Ready")}
	spec := reflector.Event{Type: reflector.Applied, Old: app(1, "Ready"), New: app(2, "Ready")}
	fmt.Println(filter.Check(time.Now(), status), filter.Check(time.Now(), spec))

	_, err = predicate.Parse([]string{"genration"}, predicate.Options{})
	fmt.Println(err)
	// Output:
	// hide pass
	// predicates[0]: "genration": "genration" is not a predicate: want one of generation, resourceVersion, labels, annotations, finalizers, deletion, func, or all(...) or any(...) of them; did you mean "generation"?
}
