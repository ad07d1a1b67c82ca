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
	"time"

	"github.com/wasmctl/wasmctl/abi"
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
	Hooks   Hooks
	// Restarting reports that Engine ends, and is loaded again.
	Restarting bool
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
	// Group are the replicas that share the objects; nil unless they do.
	Group Group
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
		if st.Shards == nil || c.Engine == nil {
			continue
		}
		if hint := unevenText(c.Name, st.Shards.By[c.Name], c.Engine.Runtime.PerSlot()); hint != "" {
			st.Shards.Hints = append(st.Shards.Hints, hint)
		}
	}
	return st
}

// view returns the assignment of objects to replicas; nil unless replicas share the
// objects.
func (s Service) view() *shard.View {
	if s.Group == nil {
		return nil
	}
	return s.Group.View()
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
func (s Service) Trigger(ctx context.Context, name string, objects []abi.Key, force bool) (res admin.Steered, err error) {
	c, err := s.running(name)
	if err != nil {
		return res, err
	}
	if len(objects) == 0 && c.Engine.Shared() {
		return s.steer(ctx, name, func(w *shard.Wanted) {
			if w.Trigger = w.Generation; force {
				w.Force = w.Generation
			}
		})
	}
	for i := range objects {
		objects[i] = withNamespace(c.Engine, objects[i])
		if err := s.elsewhere(ctx, c.Engine, objects[i]); err != nil {
			return res, err
		}
	}
	res.Triggered, err = c.Engine.Trigger(ctx, objects, force)
	return res, err
}

// Pause implements admin.Service.
func (s Service) Pause(ctx context.Context, name string, paused bool) (res admin.Steered, err error) {
	c, err := s.running(name)
	switch {
	case err != nil:
		return res, err
	case c.Engine.Shared():
		return s.steer(ctx, name, func(w *shard.Wanted) { w.Paused = paused })
	}
	c.Engine.Pause(paused)
	return res, nil
}

// PauseObject implements admin.Service.
func (s Service) PauseObject(ctx context.Context, name string, object abi.Key, paused bool) error {
	c, err := s.running(name)
	if err != nil {
		return err
	}
	return c.Engine.PauseObject(ctx, withNamespace(c.Engine, object), paused)
}

// Release implements admin.Service.
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

// History implements admin.Service.
func (s Service) History(name string) ([]admin.Change, error) {
	c, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return c.Modules.History(), nil
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
