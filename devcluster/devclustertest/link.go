// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
)

// Link is a TCP connection path to an API server that a test can break. It forwards bytes without interpreting them, so TLS is end to end:
// the certificate is valid for 127.0.0.1, which is also the address of the link.
//
// It is safe for concurrent use.
type Link struct {
	t       testing.TB
	admin   *rest.Config
	backend string // host:port of the API server
	addr    string // host:port of the link
	wg      sync.WaitGroup

	mu    sync.Mutex
	ln    net.Listener           // nil while connections are refused; guarded by mu
	open  chan struct{}          // closed unless stalled; guarded by mu
	pairs map[*linkPair]struct{} // current connections; guarded by mu
}

// linkPair is one connection through the link: its client side and its server side.
type linkPair struct {
	once  sync.Once
	ended chan struct{} // closed when the pair should end
	reset bool          // whether it ends by RST instead of gracefully; set before ended is closed
}

// end ends the pair; the first call determines how.
func (p *linkPair) end(reset bool) {
	p.once.Do(func() {
		p.reset = reset
		close(p.ended)
	})
}

// close closes one side. A reset cannot be mistaken for a graceful end by the peer, and discards data in transit.
func (p *linkPair) close(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok && p.reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close() // the peer may be gone
}

// Proxy opens a Link to the control plane; it is closed when the test ends. It survives a restart of the control plane.
func Proxy(t testing.TB, c *devcluster.Cluster) *Link {
	t.Helper()
	u, err := url.Parse(c.URL())
	if err != nil {
		t.Fatalf("link: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("link: %v", err)
	}
	l := &Link{
		t: t, admin: c.RESTConfig(), backend: u.Host, addr: ln.Addr().String(),
		open: make(chan struct{}), pairs: map[*linkPair]struct{}{},
	}
	close(l.open)
	l.serve(ln)
	t.Cleanup(func() {
		l.Refuse()
		l.Cut()
		l.wg.Wait()
	})
	return l
}

// RESTConfig returns a client configuration of an admin that uses the link.
func (l *Link) RESTConfig() *rest.Config { return l.Through(l.admin) }

// Through returns a copy of rc, a configuration for the same control plane, that uses the link.
func (l *Link) Through(rc *rest.Config) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.Host = "https://" + l.addr
	return rc
}

// Cut ends every connection with a reset. New ones are accepted as before.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		p.end(true)
	}
}

// Refuse closes the port: new connections are refused, as with a server that is down. Existing ones continue; Cut ends them.
func (l *Link) Refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ln != nil {
		_ = l.ln.Close() // ends the accept loop, even if it returns an error
		l.ln = nil
	}
}

// Stall stops forwarding bytes in both directions without closing anything, like a router that drops packets. New connections are accepted,
// and stall too. Writes in progress still arrive.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isClosed(l.open) {
		l.open = make(chan struct{})
	}
}

// Resume undoes Refuse and Stall. Delayed bytes arrive now; none are lost.
func (l *Link) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isClosed(l.open) {
		close(l.open)
	}
	if l.ln != nil {
		return
	}
	ln, err := listenAgain(l.addr)
	if err != nil {
		l.t.Errorf("link: resume: %v", err)
		return
	}
	l.serve(ln)
}

// listenAgain reopens the port, which may be in use by an outgoing connection of another process for a moment.
func listenAgain(addr string) (net.Listener, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			return ln, nil
		}
		select {
		case <-tick.C:
		case <-limit:
			return nil, fmt.Errorf("port[%s]: %w", addr, err)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// serve accepts connections until ln is closed. The caller must hold mu, unless the link has not been published yet.
func (l *Link) serve(ln net.Listener) {
	l.ln = ln
	l.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return // Refuse closed it
			}
			p := &linkPair{ended: make(chan struct{})}
			l.mu.Lock()
			taken := l.ln == ln // otherwise Refuse was called in between
			if taken {
				l.pairs[p] = struct{}{}
			}
			l.mu.Unlock()
			if !taken {
				_ = conn.Close()
				return
			}
			l.wg.Go(func() { l.connect(p, conn) })
		}
	})
}

// connect connects the client to the API server until one of them ends or Cut is called.
func (l *Link) connect(p *linkPair, client net.Conn) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pairs, p)
	}()
	if !l.pass(p) {
		p.close(client)
		return
	}
	server, err := net.Dial("tcp", l.backend)
	if err != nil {
		p.end(true) // the server is down; the client sees a reset
		p.close(client)
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(p, server, client) })
	pumps.Go(func() { l.pump(p, client, server) })
	<-p.ended
	p.close(client)
	p.close(server)
	pumps.Wait()
}

// pump forwards bytes in one direction; when it ends, so does the pair, in the same way as the sender.
func (l *Link) pump(p *linkPair, to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !l.pass(p) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				p.end(true)
				return
			}
		}
		if err != nil {
			p.end(!errors.Is(err, io.EOF))
			return
		}
	}
}

// pass waits while the link is stalled; it returns false if the pair has ended.
func (l *Link) pass(p *linkPair) bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	case <-p.ended:
		return false
	}
}
