package main

import (
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// statusOfRuns adds how the runs of the controller do.
func (s *session) statusOfRuns(c *admin.Controller, stats *controller.Stats) {
	c.Workers, c.OldestReady = s.module.Concurrency(), admin.Duration(stats.OldestReady)
	c.Failing = stats.Reconciles.Failing
	c.Denied, c.Generation = s.denied.Load(), s.module.Generation()
	c.Memory, c.History = s.module.Memory(), int64(s.history.Bytes())
	if f := feedOf(s.log); f != nil {
		c.LogsDropped = f.limiter.droppedLines()
	}
	if running := s.history.Running(); len(running) > 0 {
		r := &running[0]
		c.LongestRun = &admin.LongestRun{Object: r.Key.String(), ID: r.ID, Since: r.Since}
	}
	if key, run, ok := s.history.LastFailure(); ok {
		c.LastFailure = &admin.LastFailure{Object: key.String(), At: run.Started.Add(run.Took), Kind: run.Kind, Error: run.Error}
	}
}
