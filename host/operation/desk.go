// SPDX-License-Identifier: Apache-2.0

// Package operation answers the requests of guests: operations, metrics, and lines for the
// log. A Desk serves one instance and knows neither its memory nor its code, so it does not
// matter whether the instance runs in this process or in another.
package operation

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/host/share"
)

// API serves the operations that leave the sandbox: every byte that a guest reads from or
// writes to the cluster crosses Call.
type API interface {
	// Call answers one operation. ctx ends when the guest's call runs out of time or is
	// canceled. req belongs to Call; it has not been checked. The body of the response
	// must not be changed afterwards. Call must be safe for concurrent use.
	Call(ctx context.Context, op abi.Op, req []byte) abi.Response
}

// Host answers the requests of a guest. It is a Desk, or the connection to one.
type Host interface {
	// Operation answers an operation.
	Operation(op abi.Op, req []byte) abi.Response
	// Metric reports a metric.
	Metric(kind int32, name []byte, value float64) abi.Status
	// Cancelled returns 1 if the run should come to an end, and otherwise 0.
	Cancelled() int32
	// Log logs a message of the guest, and Warn one of the host about it.
	Log(level slog.Level, b []byte)
	Warn(msg string)
	// Print takes what the guest prints.
	Print(stream Stream, b []byte)
	// Enabled reports whether lines of a level are logged.
	Enabled(level slog.Level) bool
	// Resize charges the memory budget for an instance of size bytes in place of the size
	// before. If that fails, the size before stays charged.
	Resize(size int64) error
}

// Worker is the instance that a Desk serves, while it works for it.
type Worker interface {
	// Charge charges the guest for work on n bytes.
	Charge(n int)
	// Pause gives up the instance's turn of a CPU, if it has one, before a wait for something
	// else. Resume ends that.
	Pause() (had bool)
	Resume(had bool)
	// Cancel has cancel called when the call is interrupted; nil ends that. It reports
	// whether the call was interrupted before.
	Cancel(cancel *context.CancelFunc) (interrupted bool)
}

// Env is what the desks of all instances of a revision have in common. Its fields do not
// change once there are desks, except Trial and Draining.
type Env struct {
	Number  uint64 // of the revision
	Name    string // of the controller
	Limits  share.Limits
	API     API // nil if there is none
	Log     *slog.Logger
	Secrets *redact.Values
	Metric  func(kind int32, name string, value float64) abi.Status // nil if there are none
	Share   *share.Module
	Module  *Module
	Memory  *share.Account // of the linear memory of instances
	Account *share.Account // of the host's own memory
	// Opaque means that the guest reads opaque JSON. Otherwise, it is decoded.
	Opaque bool

	Trial    atomic.Bool // the runs do not count: no metrics
	Draining atomic.Bool // the revision was replaced
}

// LimitError counts that a limit was reached, and returns the error of the call.
func (e *Env) LimitError(name abi.LimitName, what string, err error) *abi.LimitError {
	e.Share.Hits.Add(name)
	return e.Limits.Error(name, what, err)
}

// Module is what the desks of all revisions of a module have in common. The zero Module is
// ready for use, by any number of goroutines.
type Module struct {
	Draining    atomic.Bool   // the host is stopping
	UnknownKeys atomic.Uint64 // in results
	warnUnknown sync.Once
	logs        logGate
	events      share.Bucket
	series      metricSeries
}

// Access is the set of host functions that a guest may use in an entry call. Each value
// includes those before.
type Access int

// The values of Access.
const (
	AccessNone   = Access(iota) // start code, buffer, describe: log and WASI
	AccessConfig                // configure, convert: also config_get
	AccessCache                 // map, filter, validate, default: also cache_get and cache_list
	AccessAll                   // reconcile, finalize, error_policy
)

// Run is the state of one entry call.
type Run struct {
	// Parent is the caller's context, for operations and log lines.
	Parent context.Context //nolint:containedctx // it lives as long as the call
	// StartedAt and Limit determine the end of the call, which is Deadline.
	StartedAt time.Time
	Limit     time.Duration
	Deadline  time.Time
	// Access is more than AccessNone only while an entry runs.
	Access Access
	// ID and Key name the run in log lines.
	ID  string
	Key abi.Key
	// Calls counts operations, and Events those that record one.
	Calls, Events int64
	// Sources are the sources of values that the guest has asked.
	Sources abi.Source
	// Waited is how long the guest waited for operations, for its turn and for the module's
	// fuel rate. The time that it sleeps does not count.
	Waited time.Duration
}

// Desk serves one instance. It belongs to the goroutine that runs the guest.
type Desk struct {
	Env      *Env
	Run      *Run
	Settings *Settings
	Worker   Worker
	Output   Output

	// charged is the linear memory that the budget has counted, in bytes. Others may read it.
	charged  atomic.Int64
	refusals Refusals
}

// NewDesk returns a desk for an instance.
func NewDesk(env *Env, run *Run, worker Worker) *Desk {
	d := &Desk{Env: env, Run: run, Worker: worker, refusals: NewRefusals(env)}
	d.Output.desk = d
	return d
}

// Cancelled implements Host.
func (d *Desk) Cancelled() int32 {
	if d.Env.Module.Draining.Load() || d.Env.Draining.Load() {
		d.Run.Sources |= abi.SourceLimit
		return 1
	}
	return 0
}

// Enabled implements Host.
func (d *Desk) Enabled(level slog.Level) bool { return d.Env.Log.Enabled(d.Run.Parent, level) }

// Charged returns the memory of the instance that the budget has counted, in bytes. Any goroutine may
// call it.
func (d *Desk) Charged() int64 { return d.charged.Load() }

// Resize implements Host. It may wait for memory that others must give back.
func (d *Desk) Resize(size int64) (err error) {
	before := d.charged.Load()
	if size < before {
		d.Env.Memory.Give(before - size)
	} else if d.Run.StartedAt.IsZero() { // the instance is being made, and has no turn
		err = d.Env.Memory.Take(size - before)
	} else if !d.Env.Memory.TryTake(size - before) {
		d.wait(func() { err = d.Env.Memory.Take(size - before) })
	}
	if err != nil {
		d.Env.Share.Hits.Add(abi.LimitMemoryBudget)
		return err
	}
	d.Env.Share.Memory.Add(size - before)
	d.charged.Store(size)
	return nil
}
