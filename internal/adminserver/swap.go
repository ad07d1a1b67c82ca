// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// why returns the reason of a change by a command, with the user.
func why(ctx context.Context, command string) string {
	if caller := admin.Caller(ctx); caller != "" {
		return command + ", by " + caller
	}
	return command
}

// Swap implements admin.Service.
func (s Service) Swap(ctx context.Context, name string, wasm []byte, options admin.SwapOptions) (res admin.Swapped, err error) {
	c, err := s.running(name)
	if err != nil {
		return res, err
	}
	canary, err := canaryOf(options.Canary, c.Canary)
	if err != nil {
		return res, failure.Usage.Wrap(err)
	}
	res.Revision, res.Canary, err = c.Modules.Swap(ctx, options.From, wasm, options.Proof, rollout.SwapOptions{Force: options.Force, Canary: canary, Why: why(ctx, "wasmctl swap")})
	if errors.Is(err, host.ErrSameModule) {
		res.Unchanged = true
		if res.Revision == 0 {
			res.Revision = c.Engine.Module.Revision()
		}
		return res, nil
	}
	return res, refused(err)
}

// unready are the errors of requests that a controller cannot carry out, whatever the module is.
var unready = []error{
	engine.ErrNative, engine.ErrNotRunning, engine.ErrPreparing, engine.ErrStopping, engine.ErrSuperseded,
	host.ErrNotKept, replay.ErrShadowed, rollout.ErrNoCanary,
}

// refused classifies the error of a request to run a module: unless it is one of unready, the controller does not accept the module.
func refused(err error) error {
	if slices.ContainsFunc(unready, func(target error) bool { return errors.Is(err, target) }) {
		return err
	}
	return failure.Module.Wrap(err)
}

// canaryOf parses the canary of a request. It returns nil if the request has none, so that
// usual, the canary of the controller, applies. A request that sets only a time gets the
// objects of usual, and one without a time gets the time of usual.
func canaryOf(c *admin.Canary, usual rollout.Canary) (*rollout.Canary, error) {
	if c == nil {
		return nil, nil
	}
	if !usual.Enabled() {
		usual.Time = v1alpha1.DefaultCanaryTime
	}
	if c.Time != nil {
		usual.Time = *c.Time
	}
	if c.Share == "" && len(c.Namespaces) == 0 && c.Selector == "" && usual.Enabled() {
		return &usual, nil
	}
	spec := v1alpha1.Canary{Namespaces: c.Namespaces, Time: v1alpha1.Duration(usual.Time.String())}
	var badShare, badSelector error
	if c.Share != "" {
		badShare = spec.Percent.UnmarshalJSON([]byte(strconv.Quote(c.Share)))
	}
	spec.Selector, badSelector = v1alpha1.SelectorOf(strings.TrimSpace(c.Selector))
	if c.Share == v1alpha1.CanaryOff && (len(c.Namespaces) > 0 || spec.Selector != nil) {
		return nil, errors.New("canary off: omit its namespaces and its selector")
	}
	if err := errors.Join(badShare, badSelector, spec.Validate(nil).ToAggregate()); err != nil {
		return nil, fmt.Errorf("canary: %w", err)
	}
	o := rollout.CanaryOf(&spec)
	return &o, nil
}

// Rollback implements admin.Service.
func (s Service) Rollback(ctx context.Context, name string, to uint64) (res admin.Swapped, err error) {
	c, err := s.running(name)
	if err != nil {
		return res, err
	}
	res.Revision, res.Canary, err = c.Life.Rollback(ctx, to, why(ctx, "wasmctl rollback"))
	return res, refused(err)
}

// Promote implements admin.Service.
func (s Service) Promote(ctx context.Context, name string) (res admin.Swapped, err error) {
	c, err := s.running(name)
	if err != nil {
		return res, err
	}
	res.Revision, err = c.Life.Promote(ctx, why(ctx, "wasmctl promote"))
	return res, refused(err)
}

// Abort implements admin.Service.
func (s Service) Abort(ctx context.Context, name string) (res admin.Swapped, err error) {
	c, err := s.running(name)
	if err != nil {
		return res, err
	}
	res.Revision, err = c.Life.Abort(ctx, why(ctx, "wasmctl abort"))
	return res, refused(err)
}
