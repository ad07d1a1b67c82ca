// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"maps"

	"github.com/wasmctl/wasmctl/host/operation"
)

// Configure changes the settings of the module: values over the manifest's defaults, in
// place of Config.Settings and of earlier values. A fresh instance is asked first. If it
// refuses them (an error that matches operation.ErrRefused), traps or does not answer (an
// *abi.CallError), the old ones stay for all. Otherwise every guest that is acquired from
// now on has them; guests in use finish with the old ones. Equal settings change nothing.
func (m *Module) Configure(ctx context.Context, values map[string]string) error {
	// The slot of hooks keeps two changes, or a change and a swap, from interleaving.
	if err := m.shared.take(ctx, m.shared.hookSlots); err != nil {
		return fmt.Errorf("module[%s]: configure: %w", m.name, err)
	}
	defer func() { <-m.shared.hookSlots }()
	rev := m.retain()
	if rev == nil {
		return fmt.Errorf("module[%s]: configure: %w", m.name, ErrClosed)
	}
	defer rev.Release()
	if err := rev.reconfigure(ctx, values, 0); err != nil {
		return fmt.Errorf("module[%s]: configure: the settings stay as they were: %w", m.name, err)
	}
	m.values.Store(&values)
	return nil
}

// Settings returns the settings in force, which must not be changed, and their number: 1,
// and one more with each change.
func (m *Module) Settings() (values map[string]string, number int64) {
	s := m.last.Load().settings.Load()
	return s.Plain, s.Gen
}

// reconfigure changes the settings, which get a number after the given one. The caller holds
// the slot of hooks.
func (r *revision) reconfigure(ctx context.Context, values map[string]string, after int64) error {
	cfg := r.cfg
	cfg.Settings = values
	next, old := cfg.settings(r.spec.Manifest), r.settings.Load()
	if maps.Equal(next, old.Plain) {
		return nil
	}
	s := operation.NewSettings(max(old.Gen, after)+1, next)
	if err := s.CheckSize(); err != nil {
		return err
	}
	fresh, err := r.newInstance(ctx, s)
	if err != nil {
		return err
	}
	r.settings.Store(s)
	// The new instance replaces an idle one, so that changes do not make the pool grow.
	if replaced := r.pool.popOldest(); replaced != nil {
		replaced.Close(ctx)
	}
	r.park(fresh)
	return nil
}
