// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// permissionTime is the maximum time in which the API server permits a request whose body it does not have yet.
const permissionTime = 15 * time.Second

// together sends n PATCH requests, and returns when all of them have ended. The API server permits each of them before any of them takes
// effect. So a process can release all objects that its rights consist of, although any one that is gone ends its rights. If the API server
// refuses one request, none takes effect.
//
// The requests have the header Expect: 100-continue. The API server checks the rights of a request before it reads the body, and asks for
// the body only then. No body is sent before it has asked for all of them.
func together(ctx context.Context, cluster *rest.Config, n int, send func(ctx context.Context, client dynamic.Interface, i int) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, permissionTime, fmt.Errorf("not all of the %d requests are permitted after %v", n, permissionTime))
	defer cancel()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	security, err := rest.TLSConfigFor(cluster)
	if err != nil {
		return err
	}
	base := &http.Transport{TLSClientConfig: security, Proxy: http.ProxyFromEnvironment, DialContext: cluster.Dial, ExpectContinueTimeout: permissionTime}
	if cluster.Proxy != nil {
		base.Proxy = cluster.Proxy
	}
	defer base.CloseIdleConnections()
	authorized, err := rest.HTTPWrappersForConfig(cluster, &gate{base: base, abort: ctx.Done(), missing: n, open: make(chan struct{})})
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfigAndClient(cluster, &http.Client{Transport: authorized})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := send(ctx, client, i); err != nil {
				abort(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// gate is a transport that sends no body before the server has asked for all of them.
type gate struct {
	base  http.RoundTripper
	abort <-chan struct{}
	open  chan struct{} // closed when no body is missing

	mu      sync.Mutex
	missing int // the bodies that the server has not asked for; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Expect", "100-continue")
	r.Body, r.GetBody = &awaitedBody{ReadCloser: r.Body, gate: g}, nil
	return g.base.RoundTrip(r)
}

// awaitedBody is the body of a request. The first Read means that the server has asked for it.
type awaitedBody struct {
	io.ReadCloser

	gate  *gate
	asked bool
}

// Read waits until the server has asked for all bodies.
func (b *awaitedBody) Read(p []byte) (int, error) {
	if !b.asked {
		b.asked = true
		b.gate.arrive()
	}
	select {
	case <-b.gate.open:
		return b.ReadCloser.Read(p)
	case <-b.gate.abort:
		return 0, context.Canceled
	}
}

func (g *gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing--; g.missing == 0 {
		close(g.open)
	}
}
