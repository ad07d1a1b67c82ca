// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"log/slog"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/rollout"
)

type source = func() (Module, ControllerOptions, error)

// Controller is a controller of a Runtime, from the moment it is added until it has been
// stopped. It is safe for concurrent use.
type Controller struct {
	rt      *Runtime
	source  source
	native  *Native // nil for a controller with a module
	log     *slog.Logger
	secrets redact.Values // of the options, and those that the module has read
	life    *engine.Life
	modules modules
	results results
	changes changes

	mu      sync.Mutex
	name    string             // the current name; guarded by mu
	taken   string             // the name under which it has started, which is then fixed; guarded by mu
	options *ControllerOptions // of the last attempt to load or of Want; nil before; guarded by mu
	wanted  Module             // the module passed to Want, in place of the source's; guarded by mu
	judge   *judge             // serves the webhooks since the first start; nil before, and without webhooks; guarded by mu
}

func newController(rt *Runtime, name string, source source) *Controller {
	c := &Controller{rt: rt, source: source, name: name, log: logging.ForController(rt.log, rt.shared.Tracing.TraceIDs()), modules: modules{byDigest: map[string]storedModule{}, shadows: map[string]*shadow{}}}
	c.life = engine.NewLife(loader{c}, c.log)
	return c
}

// Name returns the name of the controller. It may change when its module is loaded.
func (c *Controller) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// started reports whether the controller has started under a name.
func (c *Controller) started(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken == name
}

// named reports whether the options of the controller set this name.
func (c *Controller) named(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options != nil && c.options.Name == name
}

// Logger returns the controller's logger. Its lines have the level of the controller and
// are shown by wasmctl logs.
func (c *Controller) Logger() *slog.Logger { return c.log }

// Started waits until the first attempt to load the controller has ended, and returns its
// error, or ErrStopping if the controller was stopped before.
func (c *Controller) Started(ctx context.Context) error { return c.life.Started(ctx) }

// Running reports whether the controller runs. Otherwise it is still loading, waits or has
// failed.
func (c *Controller) Running() bool { return c.life.View().Engine != nil }

// Err returns the reason why the controller does not run, from the last attempt to start
// it. It is nil if the controller runs or has not been tried yet. It matches the same
// errors as that of Load.
func (c *Controller) Err() error { return c.life.View().Last }

// Ended is closed when the controller has been stopped and everything that it
// started has ended.
func (c *Controller) Ended() <-chan struct{} { return c.life.Ended() }

// Stop stops the controller cleanly, and returns when everything that it started has ended
// or when ctx has ended. Its watches end unless other controllers share them. The error
// matches ErrForced if reconciles were interrupted.
func (c *Controller) Stop(ctx context.Context) error { return c.life.Stop(ctx) }

// Interrupt stops the controller by force: it cuts running reconciles short, also those that a
// Stop waits for. It does not wait.
func (c *Controller) Interrupt() { c.life.Interrupt() }

// Restart stops the controller cleanly, and starts it again with the options that its source
// then returns and with the module that is live. It does not wait.
func (c *Controller) Restart() { c.life.Restart() }

// Swap makes another module live, or runs it as a canary first, and returns its revision
// when that has begun. The queue, timers and caches are preserved. A module that cannot be
// used is refused, and the live one goes on. The error wraps ErrSameModule if the module is
// already live.
func (c *Controller) Swap(ctx context.Context, m Module, o SwapOptions) (revision uint64, err error) {
	if err := o.Canary.Validate(field.NewPath("canary")).ToAggregate(); err != nil {
		return 0, failure.Usage.Wrap(err)
	}
	to := rollout.SwapOptions{Force: o.Force, Why: o.Why}
	if o.Canary != nil {
		canary := rollout.CanaryOf(o.Canary)
		to.Canary = &canary
	}
	revision, _, err = c.swap(ctx, m, to)
	return revision, err
}

func (c *Controller) swap(ctx context.Context, m Module, o rollout.SwapOptions) (revision uint64, canary bool, err error) {
	wasm, err := m.Read(ctx)
	if err != nil {
		return 0, false, err
	}
	c.remember(m, wasm)
	return c.life.Swap(ctx, wasm, o)
}

// Want brings the controller to a module and options, which replace those of its source: by
// a swap, by new settings or by a restart, or not at all if nothing differs. A restart begins
// with the live module; another module is swapped in afterwards, and Want does not wait for
// that. If the controller does not run, it is loaded with the module and the options. A module
// that was rolled back is swapped in only by force. The error wraps ErrSettings if the live
// module refuses the settings.
func (c *Controller) Want(ctx context.Context, m Module, o ControllerOptions, so SwapOptions) error {
	settings, err := o.Config.Texts()
	if err != nil {
		return err
	}
	c.secrets.LearnTexts(o.Secrets)
	digest := ""
	if d, ok := m.(digested); ok {
		digest = d.Digest()
	}
	h, ok := c.modules.get(digest)
	if !ok {
		if h, err = c.stored(ctx, m); err != nil {
			return err
		}
	}
	c.mu.Lock()
	differs := life.Nothing
	if c.options != nil {
		differs = difference(*c.options, o)
	}
	c.wanted, c.options = m, &o
	c.mu.Unlock()
	return c.life.Want(ctx, engine.Wanted{Digest: h.digest, Module: h, Settings: settings, Differs: differs, Force: so.Force, Why: so.Why})
}

// digested is implemented by modules whose digest is known before they are read.
type digested interface{ Digest() string }

// difference classifies the difference between options. Functions are ignored, and so are Secrets,
// which change with Config.
func difference(a, b ControllerOptions) life.Difference {
	settings := !reflect.DeepEqual(a.Config, b.Config)
	for _, o := range []*ControllerOptions{&a, &b} {
		o.Config, o.Secrets, o.Audit, o.OnWrite = nil, nil, nil, nil
	}
	switch {
	case !reflect.DeepEqual(a, b):
		return life.Options
	case settings:
		return life.Settings
	}
	return life.Nothing
}

// Rollback makes the module of an earlier revision live again; 0 is the previous revision.
// It becomes a new revision, without probation.
func (c *Controller) Rollback(ctx context.Context, to uint64) (revision uint64, err error) {
	revision, _, err = c.life.Rollback(ctx, to, "requested through the API")
	return revision, err
}

// FollowReplicas rolls back the live module, or ends the canary, if another replica has
// rolled it back since this replica took it, according to the Runtime's Notes.
func (c *Controller) FollowReplicas(ctx context.Context) error { return c.life.FollowReplicas(ctx) }

// Promote makes the canary live for all objects. It returns the live revision. The error is
// ErrNoCanary if there is no canary.
func (c *Controller) Promote(ctx context.Context) (revision uint64, err error) {
	return c.life.Promote(ctx, "requested through the API")
}

// Abort gives the objects of the canary back to the live revision. It returns the live
// revision. The error is ErrNoCanary if there is no canary.
func (c *Controller) Abort(ctx context.Context) (revision uint64, err error) {
	return c.life.Abort(ctx, "requested through the API")
}

// Configure replaces the settings of the options, and reconciles all objects. The error
// wraps ErrRefused if the module does not accept the settings; the old ones then stay in
// force.
func (c *Controller) Configure(ctx context.Context, settings map[string]string) error {
	_, err := c.life.Configure(ctx, settings)
	return err
}

// Trigger requests reconciles of objects, or of all objects if none is given, and returns
// the number of requests.
func (c *Controller) Trigger(ctx context.Context, objects ...abi.Key) (int, error) {
	return c.trigger(ctx, objects, false)
}

// ForceTrigger is like Trigger, but no run is skipped because of the spec's Memo.
func (c *Controller) ForceTrigger(ctx context.Context, objects ...abi.Key) (int, error) {
	return c.trigger(ctx, objects, true)
}

func (c *Controller) trigger(ctx context.Context, objects []abi.Key, force bool) (int, error) {
	e, err := c.life.Live()
	if err != nil {
		return 0, err
	}
	return e.Trigger(ctx, objects, force)
}

// Pause stops the controller from starting reconciles. Requests are queued until Resume.
func (c *Controller) Pause() error { return c.pause(true) }

// Resume lets the controller start reconciles again, including those that were requested in
// the meantime.
func (c *Controller) Resume() error { return c.pause(false) }

func (c *Controller) pause(paused bool) error {
	e, err := c.life.Live()
	if err == nil {
		e.Pause(paused)
	}
	return err
}
