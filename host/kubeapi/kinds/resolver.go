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

// Times of discovery.
const (
	// minRefresh is the least time between two discoveries that unknown kinds
	// cause, so that a guest with invalid requests cannot flood the API server.
	minRefresh = 3 * time.Second
	// waitInterval is how often Wait looks.
	waitInterval = 2 * time.Second
)

// Source is an API server with kinds to discover.
type Source interface {
	// Discover returns all groups and resources. Some may fail while others do not;
	// the error is then of package discovery. It wraps ErrUnavailable where asking
	// again may help.
	Discover(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Resolver knows the kinds that the API server has. It queries the API server
// when it is first needed, and again for a kind that it does not know. Safe for
// concurrent use.
type Resolver struct {
	source Source
	log    *slog.Logger

	// turn holds one token: its owner can query the API server.
	turn chan struct{}
	// snap is what the API server said last; nil before the first answer.
	snap atomic.Pointer[snapshot]
	// expired says that snap is known to be out of date.
	expired atomic.Bool
	// asked is when the API server was last asked, failed is the text of the
	// part of its answer that failed; guarded by turn.
	asked  time.Time
	failed string
}

// NewResolver returns a resolver that asks an API server. It
// warns of aggregated APIs that do not answer; a nil logger is slog's default.
func NewResolver(source Source, log *slog.Logger) *Resolver {
	r := &Resolver{source: source, log: cmp.Or(log, slog.Default()), turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// Resolve returns the kind that a name means. It takes the names that kubectl
// takes, and the form of apiVersion and kind: cm, configmaps, ConfigMap,
// deployments.apps, deployments.v1.apps, v1/ConfigMap, apps/v1/deployments.
//
// Errors: ErrBadName, *UnknownError, *AmbiguousError,
// ErrUnavailable, the API server's refusal, the end of ctx.
func (r *Resolver) Resolve(ctx context.Context, name string) (Kind, error) {
	return r.resolve(ctx, func(s *snapshot) (Kind, error) { return s.lookup(name) })
}

// ResolveGVK returns the kind of exactly this group, version and name, as
// manifests and objects give it. An empty version is the preferred one. Errors
// are those of Resolve.
func (r *Resolver) ResolveGVK(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	return r.resolve(ctx, func(s *snapshot) (Kind, error) { return s.lookupGVK(gvk) })
}

// Wait is Resolve for a kind that may not be there yet: it asks again every two
// seconds while the API server is unavailable or the kind may arrive
// (UnknownError.MayArrive), until ctx ends. It calls notify with the reason
// why it waits, once per reason; notify may be nil. The error at the end of ctx
// is its cause, with the last reason.
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
		if notify != nil && err.Error() != said {
			said = err.Error()
			notify(err)
		}
		select {
		case <-ctx.Done():
			return Kind{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(waitInterval):
		}
	}
}

// refresh asks the API server, unless it has answered and was asked less than
// minAge ago, and returns the newest snapshot. Callers that come while another
// one asks get that one's answer.
func (r *Resolver) refresh(ctx context.Context, minAge time.Duration) (*snapshot, error) {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()
	old := r.snap.Load()
	if old != nil && time.Since(r.asked) < minAge {
		return old, nil
	}
	groups, lists, err := r.source.Discover(ctx)
	r.asked = time.Now()
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	r.warn(err)
	s := newSnapshot(groups, lists, old, failed)
	r.snap.Store(s)
	r.expired.Store(false)
	return s, nil
}

// Expire makes the next look-up ask the API server again: a kind has gone, or
// is no longer namespaced, or is so now.
func (r *Resolver) Expire() { r.expired.Store(true) }

// warn says which part of discovery failed, once per change. The caller holds
// the turn.
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
