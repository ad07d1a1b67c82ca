// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// Limits on waiting: the maximum time that a request waits if a registry is busy, the number of
// tries, and the maximum time that a registry may request.
const (
	patience     = 10 * time.Second
	maxAttempts  = 4
	maxRetry     = time.Hour
	answerLimit  = 30 * time.Second
	connectLimit = 10 * time.Second
)

// errPlain is the error of a request that would have been sent unencrypted.
var errPlain = errors.New("plain HTTP is refused")

// transport sends requests. It uses TLS except for named hosts, and respects the waiting times of
// registries. It is safe for concurrent use.
type transport struct {
	strict, lax http.RoundTripper
	insecure    []string // hosts with ports
	transferred *atomic.Int64

	mu    sync.Mutex
	busy  map[string]time.Time // until when a host refuses requests; guarded by mu
	plain map[string]bool      // whether an insecure host uses plain HTTP; guarded by mu
}

func newTransport(o *Options) *transport {
	base := o.Transport
	if base == nil {
		base = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			DialContext:         (&net.Dialer{Timeout: connectLimit}).DialContext,
			TLSHandshakeTimeout: connectLimit, ResponseHeaderTimeout: answerLimit,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		}
	}
	lax := base.Clone()
	lax.TLSClientConfig = cmp.Or(lax.TLSClientConfig, &tls.Config{MinVersion: tls.VersionTLS12}).Clone()
	lax.TLSClientConfig.InsecureSkipVerify = true // for the hosts that the user has named
	return &transport{strict: base, lax: lax, insecure: o.Insecure, transferred: o.Transferred, busy: map[string]time.Time{}, plain: map[string]bool{}}
}

// client returns the client for one use, which follows redirects.
func (t *transport) client() *http.Client {
	tries := retry.NewTransport(t)
	tries.Policy = func() retry.Policy { return policy{} }
	return &http.Client{Transport: tries}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Host
	named := slices.Contains(t.insecure, host)
	if req.URL.Scheme != "https" && !named {
		return nil, fmt.Errorf("registry[%s]: %w; if it may be used so, name it: --insecure-registry %[1]s", host, errPlain)
	}
	t.mu.Lock()
	until := t.busy[host]
	t.mu.Unlock()
	if time.Until(until) > 0 {
		return nil, &BusyError{host, until}
	}
	by := t.strict
	if named {
		by = t.lax
	}
	if req.Body != nil && req.Body != http.NoBody && t.transferred != nil {
		counted := *req // a transport may not change a request
		counted.Body, req = counting{req.Body, t.transferred}, &counted
	}
	resp, err := by.RoundTrip(req)
	if err == nil {
		if t.transferred != nil {
			resp.Body = counting{resp.Body, t.transferred}
		}
		if wait := retryAfter(resp, time.Now()); wait > patience {
			t.mu.Lock()
			t.busy[host] = time.Now().Add(wait)
			t.mu.Unlock()
		}
	}
	return resp, err
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
	t.mu.Lock()
	plain, known := t.plain[host]
	t.mu.Unlock()
	if known {
		return plain
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/", nil)
	if err != nil {
		return false
	}
	once := http.Client{Transport: t.lax, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	plain = errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, syscall.ECONNREFUSED)
	if err == nil || errors.Is(err, http.ErrSchemeMismatch) { // otherwise the next try may succeed
		t.mu.Lock()
		t.plain[host] = plain
		t.mu.Unlock()
	}
	return plain
}
