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
	// freshSoon is how long the watch is waited for before its objects are listed
	// again: where nothing changes, nothing tells that nothing is missing.
	freshSoon = 100 * time.Millisecond
	// freshRetry is how often the API server is asked again after an error.
	freshRetry = time.Second
)

// Fresh returns when the store has all that was written before a time, by whomever.
// The subscription must run. The error is that of ctx.
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
	default: // somebody else has asked for it
	}
	return s.Store().AwaitVersion(ctx, reflector.ObjectRef{}, version)
}

// present returns the resourceVersion of what is watched, as it is now.
func (s *Subscription) present(ctx context.Context) (string, error) {
	w := s.watch
	api := w.client.requests(w.source, &decoder{source: w.source, options: w.source.options(), store: reflector.NewWriter().Store(), log: w.cfg.Log, decoded: &w.decoded})
	for {
		list, err := api.list(ctx, metav1.ListOptions{Limit: 1}) // without a version, it is no cached answer
		if err == nil {
			return list.ResourceVersion, nil
		}
		w.cfg.Log.Debug("cannot ask for the present version", "watch", w.source.String(), "error", err.Error())
		select {
		case <-time.After(freshRetry):
		case <-ctx.Done():
			return "", fmt.Errorf("watch[%s]: %w", w.source, context.Cause(ctx))
		}
	}
}
