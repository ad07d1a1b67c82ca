// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Intervals of discovery.
const (
	// minRefresh is the minimum interval between two discoveries for unknown kinds, so that a guest
	// with invalid requests cannot flood the API server.
	minRefresh = 3 * time.Second
	// waitInterval is the interval at which Wait retries.
	waitInterval = 2 * time.Second
)

// Source is an API server whose kinds can be discovered.
type Source interface {
	// Discover returns all groups and resources. If only some fail, the error is one of package
	// discovery. It wraps ErrUnavailable if a retry may help.
	Discover(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Resolver knows the kinds of the API server. It queries the API server for its first lookup, and
// again for an unknown kind. It is safe for concurrent use.
type Resolver struct {
	source Source
	log    *slog.Logger

	// turn holds one token: its owner can query the API server.
	turn chan struct{}
	// snap is the last answer of the API server. It is nil before the first one.
	snap atomic.Pointer[snapshot]
	// expired means that snap is out of date.
	expired atomic.Bool
	// asked is the time of the last query, err its error if there was no answer, and failed the text
	// about the part of its answer that failed. Guarded by turn.
	asked  time.Time
	err    error
	failed string
}

// NewResolver returns a resolver for an API server. It logs warnings about aggregated APIs that do
// not answer. If log is nil, it is slog's default.
func NewResolver(source Source, log *slog.Logger) *Resolver {
	r := &Resolver{source: source, log: cmp.Or(log, slog.Default()), turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// Resolve returns the kind with a name. It accepts the names of kubectl, and the form of apiVersion
// and kind: cm, configmaps, ConfigMap, deployments.apps, deployments.v1.apps, v1/ConfigMap,
// apps/v1/deployments.
//
// Errors: ErrBadName, *UnknownError, *AmbiguousError, ErrUnavailable, the API server's refusal, the
// end of ctx.
func (r *Resolver) Resolve(ctx context.Context, name string) (Kind, error) {
	return r.resolve(ctx, func(s *snapshot) (Kind, error) { return s.lookup(name) })
}

// ResolveGVK returns the kind with exactly this group, version and name, as in manifests and
// objects. An empty version means the preferred one. Errors are those of Resolve.
func (r *Resolver) ResolveGVK(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	return r.resolve(ctx, func(s *snapshot) (Kind, error) { return s.lookupGVK(gvk) })
}

// Wait is Resolve for a kind that may not exist yet. It retries every two seconds while the API
// server is unavailable or the kind may arrive (UnknownError.MayArrive), until ctx ends. It calls
// notify, which may be nil, once for each reason for waiting. At the end of ctx, the error is its
// cause with the last reason.
func (r *Resolver) Wait(ctx context.Context, name string, notify func(error)) (Kind, error) {
	return r.wait(ctx, notify, func(s *snapshot) (Kind, error) { return s.lookup(name) })
}

// WaitGVK is Wait for ResolveGVK.
func (r *Resolver) WaitGVK(ctx context.Context, gvk schema.GroupVersionKind, notify func(error)) (Kind, error) {
	return r.wait(ctx, notify, func(s *snapshot) (Kind, error) { return s.lookupGVK(gvk) })
}

// lookupFunc finds a kind in a snapshot.
type lookupFunc func(*snapshot) (Kind, error)

func (r *Resolver) resolve(ctx context.Context, lookup lookupFunc) (Kind, error) {
	s := r.snap.Load()
	if s != nil && !r.expired.Load() {
		k, err := lookup(s)
		if !errors.Is(err, ErrUnknown) {
			return k, err
		}
	}
	s, err := r.refresh(ctx, minRefresh)
	if err != nil {
		return Kind{}, err
	}
	return lookup(s)
}

func (r *Resolver) wait(ctx context.Context, notify func(error), lookup lookupFunc) (Kind, error) {
	said := ""
	for {
		s, err := r.refresh(ctx, waitInterval/2)
		var k Kind
		if err == nil {
			k, err = lookup(s)
		}
		var unknown *UnknownError
		if !errors.Is(err, ErrUnavailable) && (!errors.As(err, &unknown) || !unknown.MayArrive) {
			return k, err
		}
		if why := reason(err); notify != nil && why != said {
			said = why
			notify(err)
		}
		select {
		case <-ctx.Done():
			return Kind{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(waitInterval):
		}
	}
}

// reason identifies the reason for waiting. The text of an unavailable API server is different at each attempt: it has the
// local port, for example.
func reason(err error) string {
	if errors.Is(err, ErrUnavailable) {
		return ErrUnavailable.Error()
	}
	return err.Error()
}

// refresh returns the newest snapshot. It queries the API server unless the last query was less
// than minAge ago. Concurrent callers share the answer of one query, or its error.
func (r *Resolver) refresh(ctx context.Context, minAge time.Duration) (*snapshot, error) {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()
	old := r.snap.Load()
	if old != nil && time.Since(r.asked) < minAge {
		if r.err != nil { // the old snapshot does not tell which kinds the API server has now
			return nil, r.err
		}
		return old, nil
	}
	groups, lists, err := r.source.Discover(ctx)
	r.asked = time.Now()
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r.err = err
		return nil, err
	}
	r.err = nil
	r.warn(err)
	s := newSnapshot(groups, lists, old, failed)
	r.snap.Store(s)
	r.expired.Store(false)
	return s, nil
}

// Expire makes the next lookup query the API server again, because a kind is gone or its scope has
// changed.
func (r *Resolver) Expire() { r.expired.Store(true) }

// warn logs the failed part of discovery, once per change. The caller must hold the turn.
func (r *Resolver) warn(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.failed {
		r.log.Warn("an aggregated API does not answer; kinds of other groups are unaffected", "error", text)
	}
	r.failed = text
}
