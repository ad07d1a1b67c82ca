package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Times of discovery.
const (
	// discoveryTimeout bounds one discovery.
	discoveryTimeout = 15 * time.Second
	// minRefresh is the least time between two discoveries that unknown kinds
	// cause, so that a guest that asks for nonsense cannot flood the API server.
	minRefresh = 3 * time.Second
	// waitInterval is how often Wait looks.
	waitInterval = 2 * time.Second
)

// Resolver knows the kinds that the API server has. It asks when it is first
// needed, and again when it is asked for a kind that it does not know. Safe for
// concurrent use.
type Resolver struct {
	client *Client
	log    *slog.Logger

	// turn holds one token: who has it may ask the API server.
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

// NewResolver returns a resolver that asks the API server of a client. It
// warns of aggregated APIs that do not answer; a nil logger is slog's default.
func NewResolver(client *Client, log *slog.Logger) *Resolver {
	if log == nil {
		log = slog.Default()
	}
	r := &Resolver{client: client, log: log, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// Resolve returns the kind that a name means. It takes the names that kubectl
// takes, and the form of apiVersion and kind: cm, configmaps, ConfigMap,
// deployments.apps, deployments.v1.apps, v1/ConfigMap, apps/v1/deployments.
//
// Errors: ErrBadKindName, *UnknownKindError, *AmbiguousKindError,
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
// (UnknownKindError.MayArrive), until ctx ends. It calls notify with the reason
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
		if !errors.Is(err, ErrUnknownKind) {
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
		var unknown *UnknownKindError
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
	groups, lists, err := r.client.discover(ctx)
	r.asked = time.Now()
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, r.client.unavailable("discovery", err)
	}
	r.warn(err)
	s := newSnapshot(groups, lists, old, failed)
	r.snap.Store(s)
	r.expired.Store(false)
	return s, nil
}

// expire makes the next look-up ask the API server again: a kind has gone, or
// is no longer namespaced, or is so now.
func (r *Resolver) expire() { r.expired.Store(true) }

// warn says which part of discovery failed, once per change. The caller holds
// the turn.
func (r *Resolver) warn(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.failed {
		r.log.Warn("an aggregated API does not answer; the kinds of other groups are not concerned", "error", text)
	}
	r.failed = text
}

// discover asks for all groups and resources: two requests where the API
// server has aggregated discovery (Kubernetes 1.27 and later).
func (c *Client) discover(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	ctx, cancel := context.WithTimeout(quiet(ctx), discoveryTimeout)
	defer cancel()
	// discovery takes no context: the transport puts ours into each request.
	h := &http.Client{CheckRedirect: refuseRedirect, Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return c.transport.RoundTrip(req.WithContext(ctx))
	})}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(rest.CopyConfig(c.config), h)
	if err != nil {
		return nil, nil, err
	}
	return discovery.ServerGroupsAndResources(d)
}
