// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Times of Fresh.
const (
	// freshSoon is how long Fresh waits for the watch before it forces a new list. If nothing changes, the watch sends nothing that would
	// show that it is up to date.
	freshSoon = 100 * time.Millisecond
	// freshRetry is the delay before another request after an error.
	freshRetry = time.Second
)

// Fresh returns once the store includes everything that was written before a given time, by any client. The subscription must be running.
// The error is that of ctx.
func (s *Subscription) Fresh(ctx context.Context, before time.Time) error {
	if s.watch.status.has(before) {
		return nil
	}
	version, err := s.present(ctx)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, freshSoon)
	defer cancel()
	if s.Store().AwaitVersion(soon, reflector.ObjectRef{}, version) == nil {
		return nil
	}
	select {
	case s.watch.relist <- struct{}{}:
	default: // a relist has been requested already
	}
	return s.Store().AwaitVersion(ctx, reflector.ObjectRef{}, version)
}

// present returns the current resourceVersion of the watched resource.
func (s *Subscription) present(ctx context.Context) (string, error) {
	w := s.watch
	api := w.client.requests(w.source, &decoder{source: w.source, options: w.source.options(), store: reflector.NewWriter().Store(), log: w.cfg.Log, decoded: &w.decoded})
	for {
		list, err := api.list(ctx, metav1.ListOptions{Limit: 1}) // without a version, the response does not come from a cache
		if err == nil {
			return list.ResourceVersion, nil
		}
		w.cfg.Log.Debug("cannot get the current version", "watch", w.source.String(), "error", err.Error())
		select {
		case <-time.After(freshRetry):
		case <-ctx.Done():
			return "", fmt.Errorf("watch[%s]: %w", w.source, context.Cause(ctx))
		}
	}
}
