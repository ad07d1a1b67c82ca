// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

func Example() {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	s := scheduler.New[string, string](scheduler.Config[string]{})

	s.Schedule(now, scheduler.Request[string, string]{Key: "default/web", Msg: "timer", At: now.Add(time.Hour)})
	s.Schedule(now, scheduler.Request[string, string]{Key: "default/web", Msg: "changed"})

	item, ok := s.Pop(now)
	fmt.Println(item.Key, item.Msg, ok)
	_, ok = s.Pop(now.Add(time.Hour))
	fmt.Println("again:", ok)
	s.Done(item.Key)
	// Output:
	// default/web changed true
	// again: false
}
