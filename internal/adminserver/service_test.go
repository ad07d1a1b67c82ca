// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// source is the Source of a controller that has ended.
type source struct{}

func (source) Name() string { return "one" }

func (source) Load(context.Context, string, func(string)) engine.Attempt { return engine.Attempt{} }

func (source) Borrow(context.Context, string) ([]byte, func(), error) { return nil, func() {}, nil }

func (source) Changed(*admin.Change) {}

// refusing has modules that cannot be swapped in.
type refusing struct{ err error }

func (r refusing) Swap(context.Context, string, []byte, []byte, rollout.SwapOptions) (uint64, bool, error) {
	return 0, false, r.err
}
func (refusing) Know(_, _ []byte) func() { return func() {} }
func (refusing) Signers(string) []string { return nil }
func (refusing) History() []admin.Change { return nil }

// TestService_BlamesTheModuleOnlyForItsOwnFaults: an error of a command to a controller preserves its text. It is one of the module only if
// the controller does not accept the module, and not if there is no canary, or no controller.
func TestService_BlamesTheModuleOnlyForItsOwnFaults(t *testing.T) {
	broken := errors.New("it is no module")
	life := engine.NewLife(source{}, slog.New(slog.DiscardHandler))
	life.Discard() // it ends between the lookup and the request
	_, ended := life.Promote(t.Context(), "")
	one := Controller{
		Name: "one", Phase: admin.PhaseRunning, Life: life, Engine: engine.New(&engine.Shared{}, engine.Options{}, slog.New(slog.DiscardHandler), func(string) {}),
		Modules: refusing{broken},
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
		want, text, class := engine.ErrNotRunning, ended.Error(), failure.Class("")
		if what == "swap" {
			want, text, class = broken, broken.Error(), failure.Module
		}
		if err := call("one"); failure.Of(err) != class || !errors.Is(err, want) || err.Error() != text {
			t.Errorf("%s: %v", what, err)
		}
		if err := call("two"); !errors.Is(err, admin.ErrUnknown) || failure.Of(err) != "" {
			t.Errorf("%s of one that is not there: %v", what, err)
		}
	}
	for _, err := range []error{rollout.ErrNoCanary, host.ErrNotKept, engine.ErrSuperseded, engine.ErrPreparing} {
		one.Modules = refusing{fmt.Errorf("around: %w", err)}
		if _, got := s.Swap(t.Context(), "one", nil, admin.SwapOptions{}); !errors.Is(got, err) || failure.Of(got) != "" {
			t.Errorf("swap: %v", got)
		}
	}
	one.Engine = nil
	if _, err := s.Swap(t.Context(), "one", nil, admin.SwapOptions{}); !errors.Is(err, engine.ErrNotRunning) || failure.Of(err) != "" {
		t.Errorf("swap of one that does not run: %v", err)
	}
}

// TestCanaryOf_LeavesTheRestToTheController: a request without a time has that of the
// controller, and one without objects has its objects.
func TestCanaryOf_LeavesTheRestToTheController(t *testing.T) {
	usual, err := canaryOf(&admin.Canary{Share: "10%", Time: new(time.Hour)}, rollout.Canary{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		asked *admin.Canary
		usual rollout.Canary
		want  string
	}{
		{&admin.Canary{Share: "30%"}, *usual, "30% of the objects, for 1h0m0s"},
		{&admin.Canary{Share: "30%"}, rollout.Canary{}, "30% of the objects, for 5m0s"},
		{&admin.Canary{Time: new(time.Minute)}, *usual, "10% of the objects, for 1m0s"},
		{&admin.Canary{Share: "30%", Time: new(time.Duration)}, *usual, "30% of the objects, until wasmctl promote or abort"},
	} {
		if got, err := canaryOf(tc.asked, tc.usual); err != nil || got.String() != tc.want {
			t.Errorf("%+v: %v, %v, want %s", tc.asked, got, err, tc.want)
		}
	}
}
