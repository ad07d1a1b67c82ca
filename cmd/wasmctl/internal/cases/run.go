// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Suite runs the cases of one module. Runs do not change it.
type Suite struct {
	// Wasm is the module. Name is its name if the manifest has none.
	Wasm []byte
	Name string
	// CacheDir is the cache of compiled code. If empty, each case compiles.
	CacheDir string
	// CacheKey authenticates the content of CacheDir.
	CacheKey []byte
	// Log receives the module's log. If nil, it is discarded.
	Log *slog.Logger
}

// Verdict is the result of a case.
type Verdict struct {
	// Case and File identify the case.
	Case *Case
	// Seen is the observed result.
	Seen *Expect
	// Diff lists the differences: "-" was expected, and "+" was observed. It is nil if the case
	// passes.
	Diff []string
	// Cost is the cost of the run, or nil without one.
	Cost *Cost
	// Took is the duration of the case.
	Took time.Duration
}

// Failed reports whether the case fails.
func (v *Verdict) Failed() bool { return v.Diff != nil || len(v.Exceeded()) > 0 }

// Run runs a case. It returns an error if the case cannot run at all, for example because the
// module or an object cannot be loaded.
func (s *Suite) Run(ctx context.Context, c *Case) (Verdict, error) {
	v := Verdict{Case: c}
	started := time.Now()
	var err error
	if v.Seen, v.Cost, err = s.see(ctx, c); err != nil {
		return v, fmt.Errorf("case[%s]: %w", c.Name, err)
	}
	v.Diff = compare(c.Expect, v.Seen)
	v.Took = time.Since(started)
	return v, nil
}

// see runs a case and returns the observed result and, if there was a run, its cost.
func (s *Suite) see(ctx context.Context, c *Case) (*Expect, *Cost, error) {
	b, err := s.open(ctx, c)
	if refused, ok := errors.AsType[*abi.ResultError](err); ok && errors.Is(err, operation.ErrRefused) {
		return &Expect{Action: noRun + ": the settings are refused", Error: &Error{Class: string(refused.Class), Reason: refused.Reason, Message: refused.Message}}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer b.close(ctx)
	var seen *Expect
	switch {
	case c.Event != nil:
		seen, err = b.event(ctx)
	case c.Admission != nil:
		seen, err = b.admission(ctx)
	case c.Convert != nil:
		seen, err = b.conversion(ctx)
	}
	if seen != nil || err != nil {
		return seen, nil, err
	}
	out, err := b.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	cost := &Cost{Fuel: out.Fuel, Requests: int64(out.Cost.Requests), Memory: b.module.Memory(), Result: int64(out.Cost.Result)}
	seen = expectation(&out)
	for _, change := range b.w.server.Changes() {
		seen.Writes = append(seen.Writes, writeOf(&change))
	}
	seen.Events, seen.Metrics = b.w.events, b.metrics.list()
	if c.Expect != nil && c.Expect.Status != nil {
		seen.Status = Object{}
		if status, ok := b.w.object(b.key)["status"].(map[string]any); ok {
			seen.Status = status
		}
	}
	return seen, cost, nil
}

// bench is a module that is loaded for one case.
type bench struct {
	s   *Suite
	c   *Case
	key abi.Key
	w   *world

	metrics metrics
	module  *host.Module
	applier *applier.Applier
}

// open loads the module for a case.
func (s *Suite) open(ctx context.Context, c *Case) (*bench, error) {
	b := &bench{s: s, c: c}
	switch {
	case c.Object != nil:
		o := unstructured.Unstructured{Object: c.Object}
		b.key = abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	case strings.Contains(c.Key, "/"):
		b.key.Namespace, b.key.Name, _ = strings.Cut(c.Key, "/")
	default:
		b.key.Name = c.Key
	}
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// load loads the module and, the first time, creates its world.
func (b *bench) load(ctx context.Context) error {
	settings := map[string]string{}
	maps.Copy(settings, b.c.file.Config)
	maps.Copy(settings, b.c.Config)
	cfg := host.Config{
		Fallback: b.s.Name, Controller: b.c.file.Controller, Code: load.Options{CacheDir: b.s.CacheDir, CacheKey: b.s.CacheKey}, Logger: b.s.log(), Settings: settings, Concurrency: 1,
		Clock: operation.Clock{Now: b.now, Random: &counter{}}, Observer: operation.Observer{Metric: b.metrics.add},
		API: func(m *abi.Manifest) (_ operation.API, err error) {
			if b.w == nil {
				b.w, err = newWorld(ctx, b.c, m, b.s.log())
			}
			return b, err
		},
	}
	var err error
	if b.module, err = host.Load(ctx, b.s.Wasm, cfg); err != nil {
		return err
	}
	if err = b.begin(); err != nil {
		b.close(ctx)
	}
	return err
}

// begin creates the applier, without any earlier run.
func (b *bench) begin() (err error) {
	m := b.module.Manifest()
	b.applier, err = applier.New(applier.Config{
		Controller: b.w.name(), Module: scripted{b.module, b.c, b.now}, Deletes: m.For.Deletes, Finalizer: m.Finalizer, Cluster: b.w,
		Lookup: func(key abi.Key) applier.Object { return b.w.cache.lookup(key) }, Logger: b.s.log(),
	})
	return err
}

// reset gives the loaded module the initial world of the case.
func (b *bench) reset(ctx context.Context) (err error) {
	if b.w, err = newWorld(ctx, b.c, b.module.Manifest(), b.s.log()); err != nil {
		return err
	}
	return b.begin()
}

// Call implements operation.API, in the current world.
func (b *bench) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	return b.w.Call(ctx, op, req)
}

// now is the guest's clock. During loading, it is the case's time.
func (b *bench) now() time.Time {
	if b.w == nil {
		return b.c.at
	}
	return b.w.now
}

func (b *bench) close(ctx context.Context) { _ = b.module.Close(context.WithoutCancel(ctx)) }

func (s *Suite) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

// run runs the object once.
func (b *bench) run(ctx context.Context) (applier.Outcome, error) {
	if b.w.cache.lookup(b.key) == nil && b.c.Object != nil && b.w.object(b.key) != nil {
		return applier.Outcome{}, fmt.Errorf("the module does not watch %s: see kind, namespaces and labelSelector of for in its manifest", nameOf(b.c.Object))
	}
	reason := abi.ReasonObjectUpdated
	if b.c.Object == nil {
		reason = abi.ReasonObjectDeleted
	}
	return b.applier.Apply(ctx, b.key, queue.Reasons{First: abi.Reason{Type: reason}}, time.Time{}), nil
}

// counter is reproducible randomness. It is safe for concurrent use.
type counter struct{ n atomic.Uint64 }

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		x := c.n.Add(1) * 0x9e3779b97f4a7c15 // spreads the bits
		p[i] = byte(x >> 56)
	}
	return len(p), nil
}

// Actions other than a requeue after a known time.
const (
	awaitChange = "await change"
	backOff     = "back-off"
	noRun       = "no run"
)

// expectation is the result of a run.
func expectation(out *applier.Outcome) *Expect {
	seen := &Expect{Action: awaitChange}
	switch {
	case out.DecidedBy == applier.DecidedByBackoff:
		seen.Action = backOff
	case out.Action.Requeue:
		seen.Action = "requeue after " + out.Action.After.String()
	}
	switch {
	case out.Failed():
		seen.Error = errorOf(out.Err)
	case out.Err != nil:
		seen.Action = noRun + ": " + out.Err.Error()
	}
	return seen
}

func errorOf(err error) *Error {
	e := &Error{Message: humanize.FirstLine(err.Error())} // a trap's stack follows, which differs between compilers
	if result, ok := errors.AsType[*abi.ResultError](err); ok {
		e.Class, e.Reason, e.Message = string(result.Class), result.Reason, humanize.FirstLine(result.Message)
	}
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		e.Kind = string(call.Kind)
	}
	return e
}
