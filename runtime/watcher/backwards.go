// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renewalMargin is how much earlier than requested the API server may end a watch without being suspected of a restart.
const renewalMargin = 5 * time.Second

// presentRetry is the delay before another request for the current version, after an error.
const presentRetry = time.Second

// Epoch changes when the versions of the API server have run backwards, as after a restore of etcd: a version of an earlier epoch may be
// assigned again, to another state.
func (s *Subscription) Epoch() uint64 { return s.set.epoch.Load() }

// RanBackwards reports that the API server has answered with an older version of an object than the store has.
func (s *Subscription) RanBackwards() { s.set.ranBackwards(s.watch) }

// ranBackwards begins a new epoch and makes all watches list again: the API server sends no event before its versions have reached those
// that it had before. noticed is the watch that showed it. Until its new list is in the store, it shows nothing new.
func (s *Set) ranBackwards(noticed *sharedWatch) {
	now := noticed.epoch.Load()
	if !s.epoch.CompareAndSwap(now, now+1) {
		return
	}
	s.cfg.Log.Warn("the versions of the API server have run backwards, as after a restore of etcd: listing all objects again", "watch", noticed.source.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.listAgain()
	}
}

// listAgain requests a new list.
func (w *sharedWatch) listAgain() {
	select {
	case w.relist <- struct{}{}:
	default: // it has been requested already
	}
}

// present returns the current version of the resource, which does not come from a cache. The error is the cause of ctx.
func (r *requests) present(ctx context.Context) (string, error) {
	for {
		list, err := r.list(ctx, metav1.ListOptions{Limit: 1}, nil)
		if err == nil {
			return list.ResourceVersion, nil
		}
		r.decoder.log.Debug("cannot get the current version", "watch", r.source.String(), "error", err.Error())
		select {
		case <-time.After(presentRetry):
		case <-ctx.Done():
			return "", fmt.Errorf("watch[%s]: %w", r.source, context.Cause(ctx))
		}
	}
}

// interrupted reports whether the last watch ended earlier than requested, and records the requested end of the next one.
func (lw *listWatcher) interrupted(opts metav1.ListOptions) bool {
	now := time.Now()
	early := now.Add(renewalMargin).Before(lw.until)
	lw.until = now.Add(watchTimeout(opts))
	return early
}

// checkOrder passes the current version to the loop of the watch. It is called when a watch is resumed that was interrupted, because a
// restore of etcd needs a restart of the API server: if the versions have run backwards, the resumed watch is silent.
func (lw *listWatcher) checkOrder(ctx context.Context) {
	version, err := lw.api.present(ctx)
	if err != nil {
		return // the next watch is checked
	}
	select {
	case lw.ops <- op{kind: opCurrent, version: version}:
	case <-ctx.Done():
	}
}
