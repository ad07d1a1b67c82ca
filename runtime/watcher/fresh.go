// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// freshSoon is how long Fresh waits for the watch before it forces a new list. If nothing changes, the watch sends nothing that would show
// that it is up to date.
const freshSoon = 100 * time.Millisecond

// Fresh returns once the store includes everything that was written before a given time, by any client. The subscription must be running.
// The error is that of ctx.
func (s *Subscription) Fresh(ctx context.Context, before time.Time) error {
	if s.watch.status.has(before) {
		return nil
	}
	w := s.watch
	api := w.client.requests(w.source, &decoder{source: w.source, options: w.source.options(), store: reflector.NewWriter().Store(), log: w.cfg.Log, decoded: &w.decoded})
	version, err := api.present(ctx)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, freshSoon)
	defer cancel()
	if s.Store().AwaitVersion(soon, reflector.ObjectRef{}, version) == nil {
		return nil
	}
	s.watch.listAgain()
	return s.Store().AwaitVersion(ctx, reflector.ObjectRef{}, version)
}
