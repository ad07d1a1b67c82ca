// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// Limits on waiting: the maximum time that a request waits if a registry is busy, the number of
// tries, and the maximum time that a registry may request. Limits of answers: the number of redirects, and the bytes of
// headers.
const (
	maxRedirects = 5
	maxHeader    = 64 << 10

	patience     = 10 * time.Second
	maxAttempts  = 4
	maxRetry     = time.Hour
	answerLimit  = 30 * time.Second
	connectLimit = 10 * time.Second
)

// Errors of requests that are not sent.
var (
	errPlain    = errors.New("plain HTTP is refused")
	errRedirect = errors.New("a redirect is not followed")
)

// transport sends the requests of a Client through its Lane. It uses TLS except for named hosts, and respects the
// waiting times of registries. It is safe for concurrent use.
type transport struct {
	lane        *Lane
	pool        *pool
	guard       *Guard   // may be nil
	insecure    []string // hosts with ports
	transferred *atomic.Int64
}

func newTransport(o *Options) *transport {
	lane := cmp.Or(o.Lane, NewLane(0))
	return &transport{lane: lane, pool: lane.pool(o), guard: o.Guard, insecure: o.Insecure, transferred: o.Transferred}
}

// visit sends the requests of one use of a registry. It is not safe for concurrent use.
type visit struct {
	*transport

	home string // the host of the registry
	away bool   // whether the last request went to another host: by a redirect, or to a token service
}

// client returns the client of a visit, which follows redirects.
func (v *visit) client() *http.Client {
	tries := retry.NewTransport(v)
	tries.Policy = func() retry.Policy { return policy{} }
	return &http.Client{Transport: tries, CheckRedirect: checkRedirect}
}

// checkRedirect limits the number of redirects, and refuses those that leave TLS.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("registry[%s]: %w: it was the %dth", from.Host, errRedirect, len(via))
	case from.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("registry[%s]: %w: it leads to plain HTTP at %s", from.Host, errRedirect, req.URL.Host)
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (v *visit) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Host
	v.away = !sameName(host, v.home)
	if req.URL.Scheme != "https" && !slices.Contains(v.insecure, host) {
		return nil, fmt.Errorf("registry[%s]: %w; if it may be used so, name it: --insecure-registry %[1]s", host, errPlain)
	}
	if until := v.lane.busyUntil(host); time.Until(until) > 0 {
		return nil, &BusyError{host, until}
	}
	by, err := v.by(req)
	if err != nil {
		return nil, err
	}
	if req.Body != nil && req.Body != http.NoBody && v.transferred != nil {
		counted := *req // a transport may not change a request
		counted.Body, req = counting{req.Body, v.transferred}, &counted
	}
	resp, err := by.RoundTrip(req)
	if err == nil {
		if v.transferred != nil {
			resp.Body = counting{resp.Body, v.transferred}
		}
		now := time.Now()
		if wait := retryAfter(resp, now); wait > patience {
			v.lane.setBusy(host, now.Add(wait), now)
		}
	}
	return resp, err
}

// by returns the transport for a request. A proxy, which the operator has chosen, dials by itself, so that only
// addresses in the URL can be judged.
func (v *visit) by(req *http.Request) (*http.Transport, error) {
	switch {
	case slices.Contains(v.insecure, req.URL.Host):
		return v.pool.lax, nil
	case !v.away && (v.guard == nil || v.guard.Named(v.home)):
		return v.pool.named, nil
	case v.pool.named.Proxy == nil:
		return v.pool.guarded, nil
	}
	proxy, err := v.pool.named.Proxy(req)
	if err != nil || proxy == nil {
		return v.pool.guarded, err
	}
	if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil && v.guard.bars(ip) {
		return nil, fmt.Errorf("registry[%s]: %w", req.URL.Host, ErrBarred)
	}
	return v.pool.named, nil
}

// sameName reports whether two hosts have the same name, with any ports.
func sameName(a, b string) bool {
	return strings.EqualFold((&url.URL{Host: a}).Hostname(), (&url.URL{Host: b}).Hostname())
}

// counting counts the bytes of a body.
type counting struct {
	io.ReadCloser

	bytes *atomic.Int64
}

// Read implements io.Reader.
func (c counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// retryAfter returns the time for which a registry refuses requests, or 0.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := resp.Header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetry)
}

// policy decides whether a request is retried.
type policy struct{}

// Retry implements retry.Policy.
func (policy) Retry(attempt int, resp *http.Response, err error) (time.Duration, error) {
	backoff := time.Duration(float64(250*time.Millisecond<<attempt) * (0.9 + 0.2*rand.Float64()))
	_, busy := errors.AsType[*BusyError](err)
	switch {
	case attempt+1 >= maxAttempts:
	case err != nil:
		if again := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE); again && !busy {
			return backoff, nil
		}
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError:
		if wait := retryAfter(resp, time.Now()); wait <= patience {
			return max(wait, backoff), nil
		}
	}
	return -1, nil
}

// isPlain finds out whether a host that the user named as insecure uses plain HTTP. All others use
// TLS.
func (t *transport) isPlain(ctx context.Context, host string) bool {
	if !slices.Contains(t.insecure, host) {
		return false
	}
	t.lane.mu.Lock()
	plain, known := t.lane.plain[host]
	t.lane.mu.Unlock()
	if known {
		return plain
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/", nil)
	if err != nil {
		return false
	}
	once := http.Client{Transport: t.pool.lax, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	plain = errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, syscall.ECONNREFUSED)
	if err == nil || errors.Is(err, http.ErrSchemeMismatch) { // otherwise the next try may succeed
		t.lane.mu.Lock()
		t.lane.plain[host] = plain
		t.lane.mu.Unlock()
	}
	return plain
}
