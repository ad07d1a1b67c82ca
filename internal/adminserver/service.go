// SPDX-License-Identifier: Apache-2.0

// Package adminserver implements the service behind runtime/admin: status, explanations,
// logs, and commands for the controllers of a process.
package adminserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// Controller is a controller of a process, whether or not it runs.
type Controller struct {
	Name string
	// Phase is one of admin's phases, Message its reason, and Since its beginning.
	Phase, Message string
	Since          time.Time
	// Engine is nil unless it runs.
	Engine *engine.Controller
	Life   *engine.Life
	// Source describes the origin of its module, and For names the kind in its options.
	Source, For string
	Logger      *slog.Logger
	// Ended is closed when the controller has ended.
	Ended <-chan struct{}
	// Canary is the default for modules that are swapped in by a request that has none.
	Canary  rollout.Canary
	Modules Modules
}

// Modules has the modules of a controller, with the proofs of their signatures.
type Modules interface {
	// Swap swaps a module in, with the proof of its signature, or nil. from is its file or its
	// reference, or empty.
	Swap(ctx context.Context, from string, wasm, proof []byte, o rollout.SwapOptions) (revision uint64, canary bool, err error)
	// Know registers the proof of a module that runs without being swapped in, until forget
	// is called.
	Know(wasm, proof []byte) (forget func())
	// Signers returns the fingerprints of the keys that have signed the module with a
	// digest.
	Signers(digest string) []string
	// History returns the last changes, the oldest first.
	History() []admin.Change
}

// Service implements admin.Service for a process.
type Service struct {
	Version string // of the program
	// Hardening describes the rights that the program has given up.
	Hardening string
	// InsecureRegistries are the registries without verified TLS.
	InsecureRegistries []string
	Started            time.Time
	Gate               *leader.Gate // nil without an election
	// Leader returns the identity of the leader; nil without an election.
	Leader func() string
	// Shards returns the assignment of objects to replicas; nil unless replicas share the
	// objects.
	Shards func() *shard.View
	// Tenants returns the accounts of the tenants.
	Tenants func() []admin.Tenant
	// Controllers returns the controllers in the order in which they were added.
	Controllers func() []Controller
}

// Status implements admin.Service.
func (s Service) Status() admin.Status {
	st := admin.Status{Version: s.Version, Hardening: s.Hardening, InsecureRegistries: s.InsecureRegistries, PID: os.Getpid(), Started: s.Started}
	if v := s.view(); v != nil {
		st.Shards = shardStatus(v, time.Now())
	} else if gate := s.Gate; gate != nil {
		leads := gate.Leads()
		st.Leader = &leads
		if s.Leader != nil {
			st.LeaderID = s.Leader()
		}
	}
	if s.Tenants != nil {
		st.Tenants = s.Tenants()
	}
	for _, c := range s.Controllers() {
		st.Controllers = append(st.Controllers, Status(c))
	}
	return st
}

// view returns the assignment of objects to replicas; nil unless replicas share the
// objects.
func (s Service) view() *shard.View {
	if s.Shards == nil {
		return nil
	}
	return s.Shards()
}

// find returns the controller of this name, whether or not it runs.
func (s Service) find(name string) (*Controller, error) {
	for _, c := range s.Controllers() {
		if c.Name == name {
			return &c, nil
		}
	}
	return nil, fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown)
}

// running returns the controller of this name, which must run.
func (s Service) running(name string) (*Controller, error) {
	c, err := s.find(name)
	if err == nil && c.Engine == nil {
		err = fmt.Errorf("controller[%s]: %w: is %s: %s", name, engine.ErrNotRunning, c.Phase, c.Message)
	}
	return c, err
}

// Trigger implements admin.Service.
func (s Service) Trigger(ctx context.Context, name string, objects []abi.Key, force bool) (int, error) {
	c, err := s.running(name)
	if err != nil {
		return 0, err
	}
	for i := range objects {
		objects[i] = withNamespace(c.Engine, objects[i])
		if err := s.elsewhere(ctx, c.Engine, objects[i]); err != nil {
			return 0, err
		}
	}
	return c.Engine.Trigger(ctx, objects, force)
}

// Pause implements admin.Service.
func (s Service) Pause(name string, paused bool) error {
	c, err := s.running(name)
	if err == nil {
		c.Engine.Pause(paused)
	}
	return err
}

// PauseObject implements admin.Service.
func (s Service) PauseObject(ctx context.Context, name string, object abi.Key, paused bool) error {
	c, err := s.running(name)
	if err != nil {
		return err
	}
	return c.Engine.PauseObject(ctx, withNamespace(c.Engine, object), paused)
}

// Release implements admin.Releaser.
func (s Service) Release(ctx context.Context, name string, what admin.Release) ([]admin.Released, error) {
	c, err := s.running(name)
	if err != nil {
		return nil, err
	}
	for i := range what.Objects {
		what.Objects[i] = withNamespace(c.Engine, what.Objects[i])
	}
	return c.Engine.ReleaseObjects(ctx, what)
}

// History implements admin.Historian.
func (s Service) History(name string) ([]admin.Change, error) {
	c, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return c.Modules.History(), nil
}

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

// Configure implements admin.Service.
func (s Service) Configure(ctx context.Context, name string, change map[string]*string) (int64, error) {
	c, err := s.running(name)
	if err != nil {
		return 0, err
	}
	number, err := c.Life.Override(ctx, change)
	if errors.Is(err, operation.ErrRefused) {
		err = failure.Usage.Wrap(err)
	}
	return number, err
}

// Shadow implements admin.Service.
func (s Service) Shadow(ctx context.Context, name string, wasm []byte, options admin.ShadowOptions, report func(admin.Shadowed) error) (shadow.Summary, error) {
	c, err := s.running(name)
	if err != nil {
		return shadow.Summary{}, err
	}
	defer c.Modules.Know(wasm, options.Proof)()
	sum, err := c.Life.Shadow(ctx, engine.Bytes(wasm), engine.ShadowOptions{Limit: replay.Limit{For: options.For, Count: options.Count}, All: options.All}, func(of replay.Compared) error {
		return report(admin.Shadowed{Object: of.Object.String(), ReconcileID: of.ReconcileID, Differences: of.Differences})
	})
	return sum, refused(err)
}
