package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// HookTimeout bounds one call of map or filter, where Limits.Timeout is not
// less: they stand between an event and its reconcile.
const HookTimeout = 5 * time.Second

// ErrNoHook is returned by the method of an optional export that the module
// does not have.
var ErrNoHook = errors.New("not exported by the module")

// HasHook reports whether the module has the optional export of this name, and
// its manifest does not say that it is not real.
func (m *Module) HasHook(name string) bool { return m.last.Load().hook(name) }

// Finalizes reports whether the module has a finalizer: Manifest().Finalizer
// is its name.
func (m *Module) Finalizes() bool { return m.last.Load().hook(abi.ExportFinalize) }

// Map returns the keys of the objects that an event concerns, at most
// abi.MaxItems, by the export map; ErrNoHook where there is none. It uses a slot
// of its own, so that it can run beside as many reconciles as there may be, and
// waits for another Map, Filter or Configure. The error is an *abi.ResultError
// where the guest returned one, and an *abi.CallError where it trapped, took
// longer than HookTimeout or returned invalid output; then only its instance is
// closed.
func (m *Module) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	return m.mapBy(ctx, nil, ev)
}

// Filter calls the export filter and reports whether to keep an event;
// ErrNoHook without such an export. It runs as Map does. The caller decides
// about an event after an error; rule 23 of ARCHITECTURE.md keeps it.
func (m *Module) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	return m.filterBy(ctx, nil, ev)
}

// Map is Module.Map of the candidate, for watches that only it has. Unlike its
// other methods it may be called by any goroutine, and beside Promote; once
// another revision is live, the error is ErrClosed.
func (c *Candidate) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	return c.module.mapBy(ctx, c.gen, ev)
}

// Filter is Module.Filter of the candidate, as Map is.
func (c *Candidate) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	return c.module.filterBy(ctx, c.gen, ev)
}

func (m *Module) mapBy(ctx context.Context, g *revision, ev *abi.Event) ([]abi.Key, error) {
	var res abi.MapResult
	err := m.hook(ctx, g, abi.ExportMap, ev, func(in *instance, v uint64) error {
		b, err := in.result(v)
		if err != nil {
			return err
		}
		if res, err = abi.DecodeMapResult(b); err != nil {
			return &outputError{err}
		}
		in.gen.countUnknown(abi.ExportMap, res.Unknown)
		return nil
	})
	if err == nil && res.Error != nil {
		m.cfg.hideError(res.Error)
		err = fmt.Errorf("guest[%s]: %w", abi.ExportMap, res.Error)
	}
	return res.Keys, err
}

func (m *Module) filterBy(ctx context.Context, g *revision, ev *abi.Event) (bool, error) {
	var keep bool
	err := m.hook(ctx, g, abi.ExportFilter, ev, func(_ *instance, v uint64) error {
		if u32(v) > 1 {
			return outputErrorf("filter returned %d: want 1 (keep) or 0 (drop)", u32(v))
		}
		keep = u32(v) == 1
		return nil
	})
	return keep, err
}

// hook calls map or filter of a revision; nil is the one that is live.
func (m *Module) hook(ctx context.Context, g *revision, name string, ev *abi.Event, read func(in *instance, v uint64) error) error {
	if g == nil && !m.HasHook(name) { // needs no instance
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, ErrNoHook)
	}
	g, in, err := m.get(ctx, m.shared.hookSlots, g)
	if err != nil {
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, err)
	}
	defer func() { g.put(in, m.shared.hookSlots) }()
	if !g.hook(name) {
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, ErrNoHook)
	}
	in.run.id, in.run.key = "", ev.Key
	msg := message{first: ev.Old, second: ev.New}
	in.scratch, msg.split = abi.AppendEventHead(in.scratch[:0], ev)
	msg.head = in.scratch
	return in.enter(ctx, g.entry(name), msg, func(v uint64) error { return read(in, v) })
}
