package wasmctl

import (
	"context"

	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/replay"
	comparison "github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// ShadowOptions say for how long a module shadows the live one: For bounds the
// time, and Count, where it is not 0, the runs that are compared. All has the live
// module reconcile all objects once.
type ShadowOptions = engine.ShadowOptions

// Compared is a run of the live module that was compared with the shadow's. Values
// of Secrets are hidden.
type Compared = replay.Compared

// ShadowSummary counts the runs that were compared.
type ShadowSummary = comparison.Summary

// Shadow runs another module on the input of the live one's runs, with its writes
// held back, and reports each run that was compared; an error of report ends it.
// The error wraps ErrShadowed while another module shadows this controller.
func (c *Controller) Shadow(ctx context.Context, m Module, o ShadowOptions, report func(Compared) error) (sum ShadowSummary, err error) {
	wasm, err := m.Read(ctx)
	if err != nil {
		return sum, err
	}
	if s, ok := m.(Signed); ok {
		defer c.known(wasm, s.Proof())()
	}
	return c.life.Shadow(ctx, wasm, o, report)
}
