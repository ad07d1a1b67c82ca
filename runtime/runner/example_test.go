// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

func Example() {
	type request = scheduler.Request[string, string]
	r, err := runner.New(runner.Config[string]{Concurrency: 1},
		func(_ context.Context, item scheduler.Item[string, string]) scheduler.Next[string] {
			fmt.Println(item.Key, item.Msg)
			return scheduler.Next[string]{}
		})
	if err != nil {
		fmt.Println(err)
		return
	}

	requests := make(chan []request)
	ready := make(chan struct{})
	go func() {
		requests <- []request{{Key: "default/web", Msg: "listed", Priority: scheduler.Low}, {Key: "default/db", Msg: "listed", Priority: scheduler.Low}}
		requests <- []request{{Key: "default/db", Msg: "changed"}}
		close(ready)
		close(requests)
	}()
	fmt.Println("error:", r.Run(context.Background(), runner.Input[string, string]{Requests: requests, Ready: ready}))
	// Output:
	// default/db listed
	// default/web listed
	// error: <nil>
}
