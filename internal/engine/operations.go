package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// ErrNative is the error of what only a controller with a module can do.
var ErrNative = errors.New("the controller is a native reconciler: it has no module")

// Swap makes the module with these bytes live, or runs it as a canary first,
// and returns its revision. The error wraps host.ErrSameModule where that is
// so already.
func (c *Controller) Swap(ctx context.Context, wasm []byte, o rollout.SwapOptions) (revision uint64, canary bool, err error) {
	return c.roll(ctx, host.DigestOf(wasm), func(ctx context.Context) (uint64, error) { return c.rollout.Swap(ctx, wasm, o) })
}

// Rollback makes an earlier revision's code live again; 0 is the one before.
func (c *Controller) Rollback(ctx context.Context, to uint64, why string) (revision uint64, canary bool, err error) {
	return c.roll(ctx, "", func(ctx context.Context) (uint64, error) { return c.rollout.Rollback(ctx, to, why) })
}

// FollowReplicas rolls back the live module, or ends the canary, where another replica
// has rolled that one back since.
func (c *Controller) FollowReplicas(ctx context.Context) error {
	_, _, err := c.roll(ctx, "", c.rollout.FollowReplicas)
	return err
}

// roll has the loop change which module is live. It is not kept waiting by
// another module that is being prepared.
func (c *Controller) roll(ctx context.Context, digest string, do func(context.Context) (uint64, error)) (revision uint64, canary bool, err error) {
	if c.rollout == nil {
		return 0, false, ErrNative
	}
	err = c.ask(ctx, command{replaces: true, digest: digest, run: func(ctx context.Context) (err error) {
		revision, err = do(ctx)
		canary = c.rollout.OnCanary(revision)
		return err
	}})
	return revision, canary, err
}

// Promote gives the canary all objects, Abort none. They return the revision
// that is live.
func (c *Controller) Promote(ctx context.Context, why string) (uint64, error) {
	return c.end(ctx, why, (*rollout.Rollout).Promote)
}

// Abort is described at Promote.
func (c *Controller) Abort(ctx context.Context, why string) (uint64, error) {
	return c.end(ctx, why, (*rollout.Rollout).Abort)
}

func (c *Controller) end(ctx context.Context, why string, end func(*rollout.Rollout, context.Context, string) (uint64, error)) (live uint64, err error) {
	if c.rollout == nil {
		return 0, ErrNative
	}
	err = c.Do(ctx, func(ctx context.Context) (err error) {
		live, err = end(c.rollout, ctx, why)
		return err
	})
	return live, err
}

// Trigger asks for reconciles of the objects, or of all where there are none, and
// returns how many it asked for. One that is not there is an error. With force no run
// is skipped for what is remembered.
func (c *Controller) Trigger(ctx context.Context, objects []abi.Key, force bool) (int, error) {
	for _, key := range objects {
		if err := c.CheckKey(key); err != nil {
			return 0, err
		}
		if c.Runtime.Stored(key) == nil {
			return 0, admin.Invalid(fmt.Errorf("%s[%s]: not found: the controller %s watches no such object", c.kind.Name(), key, c.name))
		}
	}
	all := len(objects) == 0
	if force && c.memo != nil {
		c.memo.Renew(objects)
	}
	return c.Runtime.Trigger(ctx, trigger.Trigger{Refs: objects, All: all, Low: all}), nil
}

// Pause stops the controller from starting reconciles, or lets it start them
// again.
func (c *Controller) Pause(paused bool) {
	if paused {
		c.Runtime.Pause()
		c.log.Info("paused; no reconcile starts until wasmctl resume", "controller", c.name)
		return
	}
	c.Runtime.Resume()
	c.log.Info("resumed", "controller", c.name)
}

// CheckKey refuses a key that no object of the kind can have.
func (c *Controller) CheckKey(key abi.Key) error {
	switch {
	case c.kind.Namespaced && key.Namespace == "":
		return fmt.Errorf("object %q: %s is namespaced: want namespace/name", key, c.kind.Name())
	case !c.kind.Namespaced && key.Namespace != "":
		return fmt.Errorf("object %q: %s is cluster-scoped: want only a name", key, c.kind.Name())
	}
	return nil
}

// ShadowOptions say for how long a module shadows the live one.
type ShadowOptions struct {
	replay.Limit

	// All has the live module reconcile all objects once.
	All bool
}

// Shadow runs a module on the input of the live one's runs, with its writes held
// back, until the time or the count is over.
func (c *Controller) Shadow(ctx context.Context, wasm []byte, o ShadowOptions, report func(replay.Compared) error) (sum shadow.Summary, err error) {
	if c.rollout == nil {
		return sum, ErrNative
	}
	ctx, release := c.whileServed(ctx)
	defer release()
	var candidate *host.Candidate
	var dry *kubeapi.API
	if err := c.Do(ctx, func(ctx context.Context) (err error) {
		candidate, err = c.rollout.PrepareShadow(ctx, wasm, func(api *kubeapi.API) host.API {
			dry = api
			return replay.Player(api)
		})
		return err
	}); err != nil {
		return sum, err
	}
	defer candidate.Discard()
	defer c.rollout.Shadows(0)
	return c.recorder.Shadow(ctx, replay.Config{
		Limit: o.Limit, Candidate: candidate, Dry: dry, Report: report,
		Begin: func() {
			c.rollout.Shadows(candidate.Number())
			if o.All {
				c.Runtime.TriggerAll(ctx, abi.ReasonTriggered)
			}
		},
		Idle: func() bool { st := c.Runtime.Stats(); return st.Ready == 0 && st.Running == 0 },
	})
}

// whileServed returns a context that ends with the loop too.
func (c *Controller) whileServed(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-c.loop.ended:
			cancel(ErrStopping)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		wg.Wait()
	}
}

// PauseObject pauses an object by its annotation, or undoes that, in the API
// server: other replicas see it too.
func (c *Controller) PauseObject(ctx context.Context, object abi.Key, paused bool) error {
	if err := c.CheckKey(object); err != nil {
		return err
	}
	var value any // nil takes the annotation away
	if paused {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{applier.PausedAnnotation: value}}})
	if err != nil {
		return err
	}
	_, err = c.Resource(c.kind.Kind, object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "wasmctl"})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the process has no right to patch the object: run kubectl annotate %s %s %s=true", err, c.kind.Name(), object.Name, applier.PausedAnnotation)
	case err != nil:
		return err
	}
	c.log.Info(map[bool]string{true: "object paused by annotation", false: "object resumed"}[paused], "object", object.String(), "controller", c.name)
	return nil
}
