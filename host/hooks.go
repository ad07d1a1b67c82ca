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
var ErrNoHook = errors.New("module does not export it")

// HasHook reports whether the module has the optional export of this name, and
// its manifest does not say that it is not real.
func (m *Module) HasHook(name string) bool { return m.last.Load().hook(name) }

// Finalizes reports whether the module has a finalizer: Manifest().Finalizer
// is its name.
func (m *Module) Finalizes() bool { return m.last.Load().hook(abi.ExportFinalize) }

// Map returns the keys of the objects that an event concerns, at most
// abi.MaxItems, by the export map; ErrNoHook where there is none. It uses a
// slot of its own, so that it can run beside as many reconciles as there may be,
// and waits for another Map, Filter or Configure. The error is an
// *abi.ResultError where the guest returned one, and an *abi.CallError where it
// trapped, took longer than HookTimeout or returned nonsense; its instance is
// closed then, and nothing else.
func (m *Module) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	var res abi.MapResult
	err := m.hook(ctx, abi.ExportMap, ev, func(in *instance, v uint64) error {
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
		err = fmt.Errorf("guest[%s]: %w", abi.ExportMap, res.Error)
	}
	return res.Keys, err
}

// Filter reports whether an event is to be kept, by the export filter;
// ErrNoHook where there is none. It runs as Map does. What to do with an event
// after an error is up to the caller; rule 23 of ARCHITECTURE.md keeps it.
func (m *Module) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	var keep bool
	err := m.hook(ctx, abi.ExportFilter, ev, func(_ *instance, v uint64) error {
		if u32(v) > 1 {
			return outputErrorf("filter returned %d, which is neither 1 (keep) nor 0 (drop)", u32(v))
		}
		keep = u32(v) == 1
		return nil
	})
	return keep, err
}

// hook calls map or filter.
func (m *Module) hook(ctx context.Context, name string, ev *abi.Event, read func(in *instance, v uint64) error) error {
	if !m.HasHook(name) {
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, ErrNoHook)
	}
	g, in, err := m.get(ctx, m.shared.hookSlots)
	if err != nil {
		return fmt.Errorf("module[%s]: %s: %w", m.name, name, err)
	}
	defer func() { g.put(in, m.shared.hookSlots) }()
	if err = g.ask(ctx, in, name, ev, read); errors.Is(err, ErrNoHook) {
		err = fmt.Errorf("module[%s]: %s: %w", m.name, name, err)
	}
	return err
}

// ask calls map or filter of an instance.
func (g *generation) ask(ctx context.Context, in *instance, name string, ev *abi.Event, read func(in *instance, v uint64) error) error {
	if !g.hook(name) { // it was swapped meanwhile
		return ErrNoHook
	}
	in.run.id, in.run.key = "", ev.Key
	msg := message{first: ev.Old, second: ev.New}
	in.scratch, msg.split = abi.AppendEventHead(in.scratch[:0], ev)
	msg.head = in.scratch
	return in.enter(ctx, g.entry(name), msg, func(v uint64) error { return read(in, v) })
}
