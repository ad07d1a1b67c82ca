// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/replay"
	comparison "github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// ShadowOptions say for how long a module shadows the live one.
type ShadowOptions struct {
	// For limits the time, and Count the number of compared runs; 0 means no limit.
	For   time.Duration
	Count int
	// All makes the live module reconcile all objects once.
	All bool
}

// Compared is a run of the live module that was compared with the shadow's. Values of Secrets
// are hidden.
type Compared struct {
	Object      abi.Key
	ReconcileID string
	Differences []Difference
}

// Difference is one difference between a run of the live module and that of the shadow.
type Difference struct {
	// Of is the subject: "write", "action" or "error".
	Of string
	// Write describes the write, and Path is the path in its body, such as "data.color"; Path is
	// empty if one of the runs does not have the write.
	Write, Path string
	// Live and Shadow are the values in both runs; nil means none.
	Live, Shadow any
}

// ShadowSummary counts the runs that were compared.
type ShadowSummary struct {
	// Runs and Objects were compared. Different is the number of runs that differ; OfWrites,
	// OfActions and OfErrors count the kinds of differences.
	Runs, Objects, Different      int
	OfWrites, OfActions, OfErrors int
	// Dropped runs were not compared, because the other module is slower than the live one, or
	// the controller was never idle.
	Dropped int
}

// String describes the summary in a line.
func (s *ShadowSummary) String() string {
	return (&comparison.Summary{
		Runs: s.Runs, Objects: s.Objects, Different: s.Different, OfWrites: s.OfWrites, OfActions: s.OfActions, OfErrors: s.OfErrors, Dropped: s.Dropped,
	}).String()
}

// Shadow runs another module on the input of the live module's runs, without sending its
// writes, and calls report for each compared run; an error of report ends it. The error
// wraps ErrShadowed if another module already shadows this controller.
func (c *Controller) Shadow(ctx context.Context, m Module, o ShadowOptions, report func(Compared) error) (sum ShadowSummary, err error) {
	var from engine.Borrower
	var digest string
	if s, ok := m.(spilled); ok {
		h := c.spilled(m, s)
		from, digest = h, h.digest
	} else {
		wasm, err := m.Read(ctx)
		if err != nil {
			return sum, err
		}
		from, digest = engine.Bytes(wasm), load.DigestOf(wasm)
	}
	defer c.known(m, digest)()
	limit := engine.ShadowOptions{Limit: replay.Limit{For: o.For, Count: o.Count}, All: o.All}
	s, err := c.life.Shadow(ctx, from, limit, func(r replay.Compared) error {
		out := Compared{Object: r.Object, ReconcileID: r.ReconcileID}
		for _, d := range r.Differences {
			out.Differences = append(out.Differences, Difference(d))
		}
		return report(out)
	})
	return ShadowSummary{s.Runs, s.Objects, s.Different, s.OfWrites, s.OfActions, s.OfErrors, s.Dropped}, err
}
