// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of a Lane: the connections to one host, the sets of authorities with connections of their own, and the hosts
// whose waiting times it remembers. idleLimit is the time after which an unused connection is closed.
const (
	hostConnections = 8
	maxPools        = 4
	maxBusy         = 256
	idleLimit       = 30 * time.Second

	slotPoll = 100 * time.Millisecond
)

// Lane is the state that the Clients of one tenant share: connections to registries, and the times until which
// registries refuse requests. It is safe for concurrent use.
type Lane struct {
	slots chan struct{} // a token for each open connection; nil without a bound

	mu    sync.Mutex
	busy  map[string]time.Time // until when a host refuses requests; guarded by mu
	plain map[string]bool      // whether an insecure host uses plain HTTP; guarded by mu
	pools []*pool              // the most recently used one first; guarded by mu
}

// NewLane returns a Lane with at most this many open connections. 0 means no limit.
func NewLane(connections int) *Lane {
	l := &Lane{busy: map[string]time.Time{}, plain: map[string]bool{}}
	if connections > 0 {
		l.slots = make(chan struct{}, connections)
	}
	return l
}

// pool has the connections to registries whose certificates are verified with the same roots. Requests to a host that
// the operator has named use named, or lax if the host needs no verified TLS. Requests to other hosts use guarded.
type pool struct {
	roots               *x509.CertPool
	named, lax, guarded *http.Transport
}

// pool returns the pool for the roots of the options.
func (l *Lane) pool(o *Options) *pool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.pools, func(p *pool) bool { return p.roots.Equal(o.Roots) })
	var p *pool
	if i >= 0 {
		p = l.pools[i]
		l.pools = slices.Delete(l.pools, i, i+1)
	} else {
		p = l.newPool(o)
	}
	if l.pools = slices.Insert(l.pools, 0, p); len(l.pools) > maxPools {
		l.pools[maxPools].closeIdle()
		l.pools = l.pools[:maxPools]
	}
	return p
}

func (l *Lane) newPool(o *Options) *pool {
	base := o.Transport
	if base == nil {
		base = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			DialContext:         (&net.Dialer{Timeout: connectLimit}).DialContext,
			TLSHandshakeTimeout: connectLimit, ResponseHeaderTimeout: answerLimit, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		}
	}
	p := &pool{roots: o.Roots, named: base.Clone(), lax: base.Clone(), guarded: base.Clone()}
	p.lax.TLSClientConfig = cmp.Or(p.lax.TLSClientConfig, &tls.Config{MinVersion: tls.VersionTLS12})
	p.lax.TLSClientConfig.InsecureSkipVerify = true // for the hosts that the user has named
	p.guarded.Proxy = nil
	if o.Transport == nil { // the dialer of another transport is up to the caller
		p.guarded.DialContext = (&net.Dialer{Timeout: connectLimit, Control: o.Guard.control}).DialContext
	}
	for _, t := range []*http.Transport{p.named, p.lax, p.guarded} {
		t.IdleConnTimeout = idleLimit
		if l.slots != nil {
			t.MaxConnsPerHost, t.DialContext = hostConnections, l.bounded(t.DialContext)
		}
	}
	return p
}

func (p *pool) closeIdle() {
	p.named.CloseIdleConnections()
	p.lax.CloseIdleConnections()
	p.guarded.CloseIdleConnections()
}

func (l *Lane) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pools {
		p.closeIdle()
	}
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// bounded returns a dial that waits while the Lane has too many connections. Unused connections give way.
func (l *Lane) bounded(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := l.take(ctx); err != nil {
			return nil, err
		}
		release := sync.OnceFunc(func() { <-l.slots })
		conn, err := next(ctx, network, address)
		if err != nil {
			release()
			return nil, err
		}
		return &connection{conn, release}, nil
	}
}

// take takes a token of slots. The context of a dial does not end with that of its request.
func (l *Lane) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
		}
		l.closeIdle()
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-time.After(slotPoll): // another connection may be unused now
		case <-ctx.Done():
			return fmt.Errorf("%d connections to registries are open, and no more are permitted: %w", cap(l.slots), context.Cause(ctx))
		}
	}
}

// connection is a connection with a token of slots.
type connection struct {
	net.Conn

	release func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// busyUntil returns the time until which a host refuses requests, or the zero time.
func (l *Lane) busyUntil(host string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy[host]
}

// setBusy records that a host refuses requests until a time.
func (l *Lane) setBusy(host string, until, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.busy, func(_ string, t time.Time) bool { return !t.After(now) })
	if len(l.busy) < maxBusy {
		l.busy[host] = until
	}
}
