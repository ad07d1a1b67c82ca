// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// lookEvery is the interval at which the progress of the start is read.
const lookEvery = time.Second

// showSync shows how many objects the watches have listed, until all of them have synced once or ctx ends.
func (p *process) showSync(ctx context.Context) {
	var listed atomic.Int64
	task := p.streams.progress.StartCount("", &listed, 0, progress.Objects)
	defer task.End()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		st := p.rt.Admin().Status()
		what, objects, starting := syncing(&st)
		if !starting {
			return
		}
		listed.Store(objects)
		task.Say(what)
	}
}

// syncing describes the watches that have not synced, and counts the objects that have arrived. It reports whether any
// controller is still starting.
func syncing(st *admin.Status) (what string, objects int64, starting bool) {
	watches := 0
	starting = len(st.Controllers) == 0
	for i := range st.Controllers {
		c := &st.Controllers[i]
		starting = starting || c.Phase == admin.PhaseLoading || c.Phase == admin.PhaseWaiting
		for j := range c.Watches {
			w := &c.Watches[j]
			if w.Phase != "syncing" {
				continue
			}
			if watches++; watches == 1 {
				what = fmt.Sprintf("%s: listing %s", c.Name, w.Source)
			}
			objects += int64(w.Objects)
		}
	}
	if watches > 1 {
		what += fmt.Sprintf(" (and %d more)", watches-1)
	}
	return what, objects, starting || watches > 0
}
