// SPDX-License-Identifier: Apache-2.0

// Package conformance tests that host, SDKs and ABI.md agree. It has a list of cases with permanent
// IDs, and a runner that drives a guest module through the host, with a scripted cluster. The
// module must be a guest of this kit: an interpreter of the steps in a run's object, as README.md
// defines. The expected results are the same for every language, so differences between SDKs fail
// here.
//
//	g, err := conformance.Open(ctx, wasm, "")
//	if err != nil {
//		return err
//	}
//	defer g.Close(context.WithoutCancel(ctx))
//	for _, c := range conformance.Cases() {
//		fmt.Println(g.Try(ctx, c))
//	}
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// Case is a requirement for every guest.
type Case struct {
	// ID is permanent. An obsolete case leaves a gap.
	ID string
	// Section is the section of abi/ABI.md with the requirement.
	Section int
	// About describes the requirement.
	About string

	check func(p *probe) error
}

// Result is the result of a guest in a case.
type Result string

// The results of a case.
const (
	Pass  Result = "pass"
	Fail  Result = "fail"
	Lacks Result = "lacks" // the guest reports that its SDK has no function for this
)

// Outcome is the result of one case.
type Outcome struct {
	ID     string `json:"id"`
	Result Result `json:"result"`
	// Detail describes the failure, or the missing function.
	Detail string `json:"detail,omitempty"`
}

// String returns "pass number.int.0" or "fail number.int.0: why".
func (o Outcome) String() string {
	s := string(o.Result) + " " + o.ID
	if o.Detail != "" {
		s += ": " + o.Detail
	}
	return s
}

// Cases returns all cases, in the order of CASES.md.
func Cases() []Case {
	return slices.Concat(
		entryCases(), requestCases(), resultCases(), policyCases(), eventCases(), configureCases(), admissionCases(), conversionCases(),
		valueCases(), numberCases(), widthCases(), logCases(), factCases(), metricCases(), operationCases(), answerCases(), statusCases(),
		manifestCases(), growCases(), endCases(),
	)
}

// lackError is the error of a step that the guest's SDK does not support.
type lackError struct{ what string }

func (e *lackError) Error() string { return e.what }

// Guest is a module under test. Only one goroutine uses it.
type Guest struct {
	wasm      []byte
	cacheDir  string
	isolation isolate.Isolation
	rigs      map[rigKind]*rig
}

// Open loads a guest. cacheDir is the cache of compiled code, as in host.Config.CacheDir. If empty,
// each host of a case compiles the guest again. The error is that of host.Load, or explains why the
// module is not a guest of this kit.
func Open(ctx context.Context, wasm []byte, cacheDir string) (*Guest, error) {
	return OpenIsolated(ctx, wasm, cacheDir, nil)
}

// OpenIsolated is Open in guest processes, unless isolation is nil. These have clocks of their own,
// so cases about time fail there.
func OpenIsolated(ctx context.Context, wasm []byte, cacheDir string, isolation isolate.Isolation) (*Guest, error) {
	g := &Guest{wasm: wasm, cacheDir: cacheDir, isolation: isolation, rigs: map[rigKind]*rig{}}
	r, err := g.rig(ctx, fullHost)
	if err != nil {
		return nil, err
	}
	if !IsGuest(r.module.Manifest()) {
		err := fmt.Errorf("conformance: the module is for another kind than %s of %s: it is no guest of this kit", caseKind, caseGroup)
		return nil, errors.Join(err, g.Close(ctx))
	}
	return g, nil
}

const (
	caseGroup = "conformance.wasmctl.dev"
	caseKind  = "Case"
)

// IsGuest reports whether a module with this manifest is a guest of the kit.
func IsGuest(m *abi.Manifest) bool {
	return m != nil && m.For != nil && m.For.Group == caseGroup && m.For.Kind == caseKind
}

// Try runs one case.
func (g *Guest) Try(ctx context.Context, c Case) Outcome {
	out := Outcome{ID: c.ID, Result: Pass}
	r, err := g.rig(ctx, fullHost)
	if err == nil {
		r.reset()
		err = c.check(&probe{ctx: ctx, guest: g, rig: r})
	}
	if err != nil {
		out.Result, out.Detail = Fail, err.Error()
		if lack, ok := errors.AsType[*lackError](err); ok {
			out.Result, out.Detail = Lacks, lack.what
		}
	}
	return out
}

// Close releases all resources of the guest.
func (g *Guest) Close(ctx context.Context) error {
	var errs []error
	for _, r := range g.rigs {
		errs = append(errs, r.module.Close(ctx))
	}
	g.rigs = map[rigKind]*rig{}
	return errors.Join(errs...)
}

// openWith loads the guest into another host, with or without the scripted cluster.
func (g *Guest) openWith(ctx context.Context, cfg host.Config, connected bool) (*rig, error) {
	r := &rig{api: &script{}, log: &logbook{}, budget: share.NewBudget(1<<40, 0)}
	cfg.Name, cfg.Concurrency, cfg.Code.CacheDir, cfg.Process.Budget, cfg.Isolation = "conformance", 1, g.cacheDir, r.budget, g.isolation
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(r.log))
	cfg.Clock.Now = func() time.Time { return time.UnixMilli(nowMS) }
	var mono atomic.Int64
	mono.Store(1<<53 + 1) // a float64 cannot represent it
	cfg.Clock.Mono = func() int64 { return mono.Add(2) }
	if connected {
		cfg.API, cfg.Observer.Metric = func(*abi.Manifest) (operation.API, error) { return r.api, nil }, r.api.metric
	}
	var err error
	r.module, err = host.Load(ctx, g.wasm, cfg)
	return r, err
}
