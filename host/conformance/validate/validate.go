// SPDX-License-Identifier: Apache-2.0

// Package validate tries one module of a user: its bytes, and its behavior in a host with a
// simulated cluster. It needs no real cluster, and nothing that the module does leaves the sandbox.
//
//	report, err := validate.Module(ctx, wasm, validate.Options{})
//	if err != nil {
//		return err
//	}
//	for _, c := range report.Checks {
//		fmt.Println(c.Verdict, c.ID, c.Found, c.Next)
//	}
package validate

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts of a check.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn" // it works, but could cause problems
	Fail Verdict = "fail" // it violates ABI.md, or would fail in a cluster
)

// Check is one thing that was tried.
type Check struct {
	// ID is permanent.
	ID      string  `json:"id"`
	Verdict Verdict `json:"verdict"`
	// Found describes the result, in one line.
	Found string `json:"found"`
	// Next is the remedy. It is empty if there is none.
	Next string `json:"next,omitempty"`
}

// Report has the results for a module.
type Report struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Name is the name in the manifest, or in Options.
	Name   string  `json:"name"`
	Checks []Check `json:"checks"`
}

// Count returns how many checks have the verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, c := range r.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// DefaultCalls is the number of runs in the memory check.
const DefaultCalls = 10_000

// maxSteady limits the time of that check: a slow module makes fewer runs.
const maxSteady = 30 * time.Second

// Options configure the checks. The zero value works.
type Options struct {
	// Name is the name of a module whose manifest has none.
	Name string
	// Controller is the controller to try, if the module has more than one.
	Controller string
	// Objects are objects in the form of YAML or JSON. Reconcile gets the first one of its kind,
	// or an object with an empty spec, which reveals less. Webhooks and conversions get all, and
	// random objects of the CustomResourceDefinitions among them.
	Objects []map[string]any
	// Settings are the settings of host.Config.
	Settings map[string]string
	// Calls is the number of runs in the memory check. If zero, it is DefaultCalls.
	Calls int
	// CacheDir is the directory of host.Config.
	CacheDir string
	// Logger receives the output of the module. If nil, it is discarded.
	Logger *slog.Logger
}

// exam is the examination of one module.
type exam struct {
	opts   Options
	wasm   []byte
	info   *load.Info
	report *Report

	// Set after the module was loaded.
	module *host.Module
	world  *world
	budget *share.Budget
	kind   kind
	// known are objects for webhooks and conversions: the sample, those of Options, and random ones.
	known   []object
	schemas schemas
	// reported are the reported metrics, as text.
	reported map[string]bool
}

// Module tries a module. The report has the module's problems. The error is about ctx, or about
// opts.Objects.
func Module(ctx context.Context, wasm []byte, opts Options) (*Report, error) {
	if opts.Calls == 0 {
		opts.Calls = DefaultCalls
	}
	info := load.Inspect(ctx, wasm)
	e := &exam{opts: opts, wasm: wasm, info: info, schemas: schemas{}, report: &Report{Digest: info.Digest, Size: info.Size, Name: opts.Name}}
	info.Choose(opts.Controller)
	if info.Manifest != nil && info.Manifest.Name != "" {
		e.report.Name = info.Manifest.Name
	}
	if !e.bytes() || !e.load(ctx) {
		return e.report, context.Cause(ctx)
	}
	defer func() { _ = e.module.Close(context.WithoutCancel(ctx)) }()
	if err := e.findKind(); err != nil {
		return nil, err
	}
	for _, check := range []func(context.Context){
		e.describe, e.buffer, e.objects, e.absent, e.finalize, e.errorPolicy, e.events, e.configure, e.webhooks, e.conversions,
		e.statuses, e.oldHost, e.youngerHost, e.steady, e.image,
	} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		check(ctx)
	}
	e.rights()
	e.metrics()
	e.unknownKeys()
	return e.report, nil
}

// add records the result of a check.
func (e *exam) add(id string, v Verdict, found, next string) {
	e.report.Checks = append(e.report.Checks, Check{ID: id, Verdict: v, Found: found, Next: next})
}

func (e *exam) ok(id, format string, args ...any) { e.add(id, OK, fmt.Sprintf(format, args...), "") }

// load loads the module into a host with a simulated cluster.
func (e *exam) load(ctx context.Context) bool {
	e.world, e.budget = &world{}, share.NewBudget(1<<40, 0)
	m, err := host.Load(ctx, e.wasm, e.config(func(*abi.Manifest) (operation.API, error) { return e.world, nil }))
	if err != nil {
		if ctx.Err() == nil {
			e.add("load", Fail, oneLine(err), "fix the code that runs when an instance starts: init functions, describe, configure; pass settings with --config")
		}
		return false
	}
	e.module = m
	if name := m.Manifest().Name; name != "" {
		e.report.Name = name
	}
	e.ok("load", "it starts, with %s of memory", size(e.budget.Stats().Used))
	return true
}

func (e *exam) config(connect func(*abi.Manifest) (operation.API, error)) host.Config {
	return host.Config{
		Fallback: e.opts.Name, Controller: e.opts.Controller, Concurrency: 2, Settings: e.opts.Settings, Code: load.Options{CacheDir: e.opts.CacheDir}, Logger: e.opts.Logger,
		Process: host.Process{Budget: e.budget}, API: connect, Observer: operation.Observer{Metric: e.metric},
	}
}

// describe compares the result of the module's describe function with the manifest in its file,
// which the host uses. The build may have added limits, and rights from roles.
func (e *exam) describe(ctx context.Context) {
	if e.info.Manifest == nil || !e.exports(abi.ExportDescribe) {
		return
	}
	said, err := host.Describe(ctx, e.wasm, host.Config{Name: e.report.Name, Code: load.Options{CacheDir: e.opts.CacheDir}})
	if err != nil {
		e.add("describe", Fail, oneLine(err), "fix the return value of describe")
	} else if keys := difference(withoutAdded(e.info.Manifest, said), said); keys != "" {
		e.add("describe", Fail, "the manifest in the file differs from the result of describe: "+keys+" differ",
			"write it again: wasmctl annotate MODULE")
	} else {
		e.ok("describe", "equals the manifest in the file")
	}
}

// withoutAdded returns the manifest of a file without the rights that only the file has, and with the
// limits of describe.
func withoutAdded(file, said *abi.Manifest) *abi.Manifest {
	m := *file
	m.Limits, m.Capabilities = said.Limits, nil
	for _, c := range file.Capabilities {
		if slices.ContainsFunc(said.Capabilities, func(own abi.Capability) bool { return reflect.DeepEqual(own, c) }) {
			m.Capabilities = append(m.Capabilities, c)
		}
	}
	return &m
}

// metric records a metric. One instance runs at a time.
func (e *exam) metric(kind int32, name string, _ float64) abi.Status {
	if e.reported == nil {
		e.reported = map[string]bool{}
	}
	e.reported[map[int32]string{abi.MetricCounter: "counter ", abi.MetricGauge: "gauge "}[kind]+name] = true
	return abi.StatusOK
}

// metrics lists the metrics that the module has reported.
func (e *exam) metrics() {
	if len(e.reported) > 0 {
		e.ok("metrics", "it reports %s", joined(e.reported))
	}
}

// unknownKeys is the last check, because it counts the results of all runs.
func (e *exam) unknownKeys() {
	if n := e.module.UnknownKeys(); n > 0 {
		e.add("result", Warn, fmt.Sprintf("its results have %d unknown keys", n), "they are ignored: upgrade wasmctl, or look for a misspelled key")
		return
	}
	e.ok("result", "its results have no unknown keys")
}
