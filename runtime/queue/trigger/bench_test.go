// SPDX-License-Identifier: Apache-2.0

package trigger_test

import (
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// BenchmarkTrigger_Requests requests all of 10,000 objects.
func BenchmarkTrigger_Requests(b *testing.B) {
	w := reflector.NewWriter()
	for i := range 10_000 {
		o, err := reflector.Pack(map[string]any{"metadata": map[string]any{"name": fmt.Sprint("n", i)}}, reflector.Options{})
		if err != nil {
			b.Fatal(err)
		}
		w.Apply(o, func(reflector.Event) {})
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(trigger.Trigger{All: true}.Requests(nil, w.Store())); n != 10_000 {
			b.Fatal(n)
		}
	}
}
