// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"

	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func ExampleParseMap() {
	mapper, err := queue.ParseMap("annotation:example.com/apps", queue.Relation{Resource: "secrets"})
	if err != nil {
		panic(err)
	}
	secret := func(apps string) *reflector.Object {
		o, err := reflector.Pack(map[string]any{"metadata": map[string]any{
			"name": "password", "namespace": "prod", "annotations": map[string]any{"example.com/apps": apps},
		}}, reflector.Options{})
		if err != nil {
			panic(err)
		}
		return o
	}
	for _, r := range mapper(nil, reflector.Event{Type: reflector.Applied, Old: secret("blue"), New: secret("green, test/canary")}) {
		fmt.Println(r.Ref, "because of", r.Reason)
	}
	// Output:
	// prod/blue because of Related secrets prod/password
	// prod/green because of Related secrets prod/password
	// test/canary because of Related secrets prod/password
}
