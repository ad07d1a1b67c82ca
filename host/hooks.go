// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
)

// HasHook reports whether the module has the optional export of this name, and its manifest
// does not exclude it.
func (m *Module) HasHook(name string) bool { return m.last.Load().spec.Hook(name) }

// Finalizes reports whether the module has a finalizer: Manifest().Finalizer
// is its name.
func (m *Module) Finalizes() bool { return m.last.Load().spec.Hook(abi.ExportFinalize) }

// Map calls the export map, which returns the keys of the objects that an event concerns, at
// most abi.MaxItems. It has a slot of its own, so that it can run beside all reconciles, and
// waits for another Map, Filter or Configure. The error is ErrNoHook without such an export,
// an *abi.ResultError from the guest, or an *abi.CallError if the guest trapped, took longer
// than five seconds or returned invalid output; then only its instance is closed.
func (m *Module) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	return m.mapBy(ctx, nil, ev)
}

// Filter calls the export filter, and reports whether an event passes. It runs as Map does.
// After an error, the caller decides about the event; by rule 23 of ARCHITECTURE.md, it
// passes.
func (m *Module) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	return m.filterBy(ctx, nil, ev)
}

// Map is Module.Map of the candidate, for watches that only the candidate has. Unlike the
// other methods it may be called by any goroutine, and during Promote. Once another revision
// is live, the error is ErrClosed.
func (c *Candidate) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	return c.module.mapBy(ctx, c.rev, ev)
}

// Filter is Module.Filter of the candidate; see Map.
func (c *Candidate) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	return c.module.filterBy(ctx, c.rev, ev)
}

func (m *Module) mapBy(ctx context.Context, rev *revision, ev *abi.Event) ([]abi.Key, error) {
	var res abi.MapResult
	err := m.hook(ctx, rev, abi.ExportMap, ev, func(in *instance.Instance, v uint64) error {
		b, err := in.Result(v)
		if err != nil {
			return err
		}
		if res, err = abi.DecodeMapResult(b); err != nil {
			return &instance.OutputError{Err: err}
		}
		in.Spec.CountUnknown(abi.ExportMap, res.Unknown)
		return nil
	})
	if err == nil && res.Error != nil {
		m.last.Load().spec.HideInError(res.Error)
		err = fmt.Errorf("guest[%s]: %w", abi.ExportMap, res.Error)
	}
	return res.Keys, err
}

func (m *Module) filterBy(ctx context.Context, rev *revision, ev *abi.Event) (bool, error) {
	var pass bool
	err := m.hook(ctx, rev, abi.ExportFilter, ev, func(_ *instance.Instance, v uint64) error {
		if uint32(v) > 1 { //nolint:gosec // an i32
			return instance.Outputf("filter returned %d: want 1 (keep) or 0 (drop)", uint32(v)) //nolint:gosec // as above
		}
		pass = uint32(v) == 1 //nolint:gosec // an i32
		return nil
	})
	return pass, err
}

// hook calls map or filter of a revision, or of the live one if it is nil.
func (m *Module) hook(ctx context.Context, rev *revision, name string, ev *abi.Event, read func(in *instance.Instance, v uint64) error) error {
	return m.enter(ctx, rev, name, m.shared.hookSlots, func(_ *revision, in *instance.Instance) instance.Message {
		in.Run.ID, in.Run.Key = "", ev.Key
		msg := instance.Message{First: ev.Old, Second: ev.New}
		in.Scratch, msg.Split = abi.AppendEventHead(in.Scratch[:0], ev)
		msg.Head = in.Scratch
		return msg
	}, read)
}

// enter calls an optional entry of a revision, or of the live one if it is nil, on an instance
// of its own. fill names the run and makes the message.
func (m *Module) enter(ctx context.Context, rev *revision, name string, free slots,
	fill func(rev *revision, in *instance.Instance) instance.Message, read func(in *instance.Instance, v uint64) error,
) error {
	if rev == nil && !m.HasHook(name) { // needs no instance
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, ErrNoHook)
	}
	rev, in, err := m.get(ctx, free, rev)
	if err != nil {
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, err)
	}
	defer func() { rev.put(in, free) }()
	if !rev.spec.Hook(name) {
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, ErrNoHook)
	}
	return in.Enter(ctx, rev.spec.Entry(name), fill(rev, in), func(v uint64) error { return read(in, v) })
}
