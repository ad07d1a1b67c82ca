package host

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrRefused is matched by the error of settings that a guest does not accept.
// Its reason is an *abi.ResultError in the same error.
var ErrRefused = errors.New("settings refused")

// settings are what config_get serves and configure gets, encoded once. They do
// not change.
type settings struct {
	gen     int64 // counts changes, from 1
	plain   map[string]string
	all     []byte
	values  map[string][]byte
	message []byte // for configure
}

var msgpackNil = []byte{0xc0}

func newSettings(gen int64, m map[string]string) *settings {
	s := &settings{gen: gen, plain: m, all: mustEncode(m), values: make(map[string][]byte, len(m))}
	for k, v := range m {
		s.values[k] = mustEncode(v)
	}
	s.message = abi.AppendSettings(nil, &abi.Settings{Generation: gen, Values: m})
	return s
}

// next returns the settings with these values: the same number where they are
// equal, else one more. The settings before may be nil.
func (s *settings) next(values map[string]string) *settings {
	switch {
	case s == nil:
		return newSettings(1, values)
	case maps.Equal(s.plain, values):
		return s
	}
	return newSettings(s.gen+1, values)
}

// mustEncode encodes strings, which cannot fail.
func mustEncode(v any) []byte {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic("BUG: settings: " + err.Error())
	}
	return b
}

// get answers config_get.
func (s *settings) get(b []byte) abi.Response {
	req, _, err := abi.DecodeRequest[abi.ConfigRequest](b)
	if err != nil {
		return refuse(abi.StatusBadRequest, "BadRequest", "config_get: "+err.Error())
	}
	if req.Key == "" {
		return abi.Response{Body: s.all}
	}
	if v, ok := s.values[req.Key]; ok {
		return abi.Response{Body: v}
	}
	return abi.Response{Body: msgpackNil}
}

// configure gives an instance new settings, and asks it where it has configure.
// After an error, a refusal included, it must be closed.
func (in *instance) configure(ctx context.Context, s *settings) error {
	in.settings = s
	if !in.gen.hook(abi.ExportConfigure) {
		return nil
	}
	var refusal *abi.ResultError
	err := in.enter(ctx, in.gen.entry(abi.ExportConfigure), message{first: s.message}, func(v uint64) error {
		b, err := in.result(v)
		if err != nil {
			return err
		}
		var unknown []string
		if refusal, unknown, err = abi.DecodeConfigureResult(b); err != nil {
			return &outputError{err}
		}
		in.gen.countUnknown(abi.ExportConfigure, unknown)
		return nil
	})
	if err == nil && refusal != nil {
		in.gen.cfg.hideError(refusal)
		err = fmt.Errorf("guest[%s]: %w: %w", abi.ExportConfigure, ErrRefused, refusal)
	}
	return err
}

// Configure changes the settings of the module: values over the manifest's
// defaults, in the place of Config.Settings and of earlier values. A fresh
// instance is asked first. Where it refuses them (an error that matches
// ErrRefused), traps or does not answer (an *abi.CallError), the old ones stay
// for all. Else every guest that is acquired from now on has them; those in use
// finish with the old ones. Equal settings change nothing.
func (m *Module) Configure(ctx context.Context, values map[string]string) error {
	// The hook's slot keeps two changes, or a change and a swap, from
	// interleaving.
	if err := m.shared.take(ctx, m.shared.hookSlots); err != nil {
		return fmt.Errorf("module[%s]: configure: %w", m.name, err)
	}
	defer func() { <-m.shared.hookSlots }()
	g := m.retain()
	if g == nil {
		return fmt.Errorf("module[%s]: configure: %w", m.name, ErrClosed)
	}
	defer g.release()
	if err := g.reconfigure(ctx, values, 0); err != nil {
		return fmt.Errorf("module[%s]: configure: the settings stay as they were: %w", m.name, err)
	}
	m.values.Store(&values)
	return nil
}

// Settings returns the settings in force, which must not be changed, and their
// number: 1, and one more with each change.
func (m *Module) Settings() (values map[string]string, gen int64) {
	s := m.last.Load().settings.Load()
	return s.plain, s.gen
}

// reconfigure changes the settings, which get a number after the one given. The
// caller holds the hook's slot.
func (g *revision) reconfigure(ctx context.Context, values map[string]string, after int64) error {
	cfg := g.cfg
	cfg.Settings = values
	next, old := cfg.settings(g.manifest), g.settings.Load()
	if maps.Equal(next, old.plain) {
		return nil
	}
	s := newSettings(max(old.gen, after)+1, next)
	if err := s.checkSize(); err != nil {
		return err
	}
	fresh, err := g.newInstance(ctx, s)
	if err != nil {
		return err
	}
	g.settings.Store(s)
	// The new instance takes the place of an idle one, so that changes do not
	// make the pool grow.
	if replaced := g.popOldest(); replaced != nil {
		replaced.close(ctx)
	}
	g.park(fresh)
	return nil
}

func (s *settings) checkSize() error {
	if n := len(s.message); n > abi.MaxBytes {
		return fmt.Errorf("settings of %d bytes: %w", n, abi.ErrTooLarge)
	}
	return nil
}
