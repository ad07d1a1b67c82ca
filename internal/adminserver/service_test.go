// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// source is the Source of a controller that has ended.
type source struct{}

func (source) Name() string { return "one" }

func (source) Load(context.Context, string, func(string)) engine.Attempt { return engine.Attempt{} }

// TestService_WhatAControllerRefusesIsRefused: errors of commands to a controller match
// admin.ErrRefused and preserve their text; the error for an unknown name does not match.
func TestService_WhatAControllerRefusesIsRefused(t *testing.T) {
	superseded := errors.New("another module was asked for")
	life := engine.NewLife(source{}, slog.New(slog.DiscardHandler))
	life.Discard() // it ends between the lookup and the request
	_, ended := life.Promote(t.Context(), "")
	one := Controller{
		Name: "one", Phase: admin.PhaseRunning, Life: life, Engine: engine.New(&engine.Shared{}, engine.Options{}, slog.New(slog.DiscardHandler), func(string) {}),
		Swap: func(context.Context, []byte, []byte, rollout.SwapOptions) (uint64, bool, error) {
			return 0, false, superseded
		},
		Known: func(_, _ []byte) func() { return func() {} },
	}
	s := Service{Controllers: func() []Controller { return []Controller{one} }}
	for what, call := range map[string]func(name string) error{
		"swap":      func(name string) error { _, err := s.Swap(t.Context(), name, nil, admin.SwapOptions{}); return err },
		"rollback":  func(name string) error { _, err := s.Rollback(t.Context(), name, 0); return err },
		"promote":   func(name string) error { _, err := s.Promote(t.Context(), name); return err },
		"abort":     func(name string) error { _, err := s.Abort(t.Context(), name); return err },
		"configure": func(name string) error { _, err := s.Configure(t.Context(), name, nil); return err },
		"shadow": func(name string) error {
			_, err := s.Shadow(t.Context(), name, nil, admin.ShadowOptions{}, func(admin.Shadowed) error { return nil })
			return err
		},
	} {
		want, text := engine.ErrNotRunning, ended.Error()
		if what == "swap" {
			want, text = superseded, superseded.Error()
		}
		if err := call("one"); !errors.Is(err, admin.ErrRefused) || !errors.Is(err, want) || err.Error() != text {
			t.Errorf("%s: %v", what, err)
		}
		if err := call("two"); !errors.Is(err, admin.ErrUnknown) || errors.Is(err, admin.ErrRefused) {
			t.Errorf("%s of one that is not there: %v", what, err)
		}
	}
	one.Engine = nil
	if _, err := s.Swap(t.Context(), "one", nil, admin.SwapOptions{}); !errors.Is(err, admin.ErrRefused) || errors.Is(err, superseded) {
		t.Errorf("swap of one that does not run: %v", err)
	}
}
