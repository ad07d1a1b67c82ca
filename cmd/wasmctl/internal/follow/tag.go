// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/host/oci"
)

// followTag resolves the module's tag at an interval, and swaps in a new module, until ctx ends.
func (o *Follower) followTag(ctx context.Context, every time.Duration) {
	for wait := every; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait + rand.N(wait/10+1)): // never less, because the registry may have requested this delay
		}
		o.mu.Lock()
		module := o.spec.Module.String()
		o.mu.Unlock()
		wait = every
		if busy, ok := errors.AsType[*oci.BusyError](o.poll(ctx, module)); ok {
			wait = max(wait, time.Until(busy.Until))
		}
	}
}

// follows reports whether a module is in a registry and its reference can get another meaning.
func follows(module string) bool {
	ref, err := oci.Parse(module)
	return oci.IsRef(module) && err == nil && !ref.Pinned()
}

// poll asks once. A digest that was refused or rolled back is not tried again.
func (o *Follower) poll(ctx context.Context, module string) error {
	if !follows(module) { // the controllers file names another module now
		return nil
	}
	m, changed, err := o.from.Newest(ctx, module)
	if err != nil {
		if ctx.Err() == nil {
			o.log().Warn("cannot ask the registry for a new module; keeping the running one", "module", module, "error", err.Error())
		}
		return err
	}
	digest := m.Ref().Digest
	o.mu.Lock()
	changed = changed && digest != o.tried
	o.mu.Unlock()
	if !changed {
		return nil
	}
	o.log().Info("the tag names a new module", "module", m.String())
	err = o.swap(ctx, m, "the tag names a new module: "+digest)
	if later(err) || ctx.Err() != nil {
		return err // the next attempt may succeed
	}
	o.mu.Lock()
	o.tried = digest
	o.mu.Unlock()
	if err == nil || waits(err) || errors.Is(err, wasmctl.ErrSameModule) {
		o.from.Keep(module, m)
	}
	return err
}

// later reports whether a swap failed for a temporary reason.
func later(err error) bool {
	return errors.Is(err, wasmctl.ErrPreparing) || errors.Is(err, oci.ErrUnreachable) || errors.Is(err, oci.ErrUnauthorized)
}
