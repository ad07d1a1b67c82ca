// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// One reconcile: the guest is acquired, called, and asked what to do about its
// failure. The last byte of the object tells this guest what to do.
func ExampleLoad() {
	ctx := context.Background()
	m, err := host.Load(ctx, wasm.Modes, host.Config{Name: "demo", Concurrency: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()

	guest, release, err := m.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()

	req := &abi.Request{ID: "1", Attempt: 1, Key: abi.Key{Namespace: "default", Name: "web"}, Object: []byte{9}}
	res, err := guest.Reconcile(ctx, req)
	fmt.Println(res.Action, err)

	req.Object = []byte{5}
	_, err = guest.Reconcile(ctx, req)
	fmt.Println(err)

	if call, ok := errors.AsType[*abi.CallError](err); ok {
		res, err = guest.ErrorPolicy(ctx, &abi.Failure{ID: req.ID, Key: req.Key, Object: req.Object, Kind: call.Kind, Attempt: 1})
		fmt.Println(res.Action, err)
	}
	// Output:
	// requeue after 5s <nil>
	// guest[reconcile]: output: result of 16 bytes at 65530 does not lie in memory of 65536 bytes
	// requeue after 1ms <nil>
}

// A module that cannot be loaded is described all the same.
func ExampleInspect() {
	info := load.Inspect(context.Background(), wasm.BadExports)
	for _, e := range info.Exports {
		fmt.Println(e.Name+":", e.Kind)
	}
	for _, p := range info.Problems {
		fmt.Println("-", p)
	}
	// Output:
	// memory: memory
	// map: global
	// reconcile: function
	// filter: function
	// - export[reconciler_abi_1]: missing: not a reconciler module, or built without an SDK
	// - export[buffer]: missing, expected (i32) -> (i32)
	// - export[reconcile]: found (i32) -> (i64), expected (i32, i32) -> (i64)
	// - export[map]: found a global, expected (i32, i32) -> (i64)
	// - export[filter]: found (i32, i32) -> (), expected (i32, i32) -> (i32)
}
