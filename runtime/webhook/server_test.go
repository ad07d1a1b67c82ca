// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	end   context.CancelFunc
	ended context.Context
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.end(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns a connection to the server after its handshake.
func (p *pipes) dial(t *testing.T) *tls.Conn {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	c := tls.Client(client, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is not the subject of the test
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// inMemory runs a server in virtual time.
func inMemory(t *testing.T, do func(t *testing.T, p *pipes)) {
	t.Helper()
	certificate, _ := selfSigned(t)
	synctest.Test(t, func(t *testing.T) {
		s := serverOf(jobs())
		s.cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
		p := &pipes{conns: make(chan net.Conn)}
		p.ended, p.end = context.WithCancel(context.Background())
		s.listener = p
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		do(t, p)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRun_SpareConnectionsStayOpen: a request succeeds on a connection that had none for as long as the API server keeps it, before the first
// request and afterwards.
func TestRun_SpareConnectionsStayOpen(t *testing.T) {
	inMemory(t, func(t *testing.T, p *pipes) {
		c := p.dial(t)
		defer func() { _ = c.Close() }() // after the last answer
		answers := bufio.NewReader(c)
		for range 3 {
			<-time.After(90 * time.Second)
			body := reviewOf(t)
			if _, err := fmt.Fprintf(c, "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%d %s %v", res.StatusCode, b, err)
			}
		}
	})
}

// TestRun_SlowBodiesEnd: a body that arrives slowly is refused after bodyTimeout.
func TestRun_SlowBodiesEnd(t *testing.T) {
	inMemory(t, func(t *testing.T, p *pipes) {
		c := p.dial(t)
		defer func() { _ = c.Close() }() // the server has closed it
		<-time.After(time.Minute)
		start := time.Now()
		if _, err := io.WriteString(c, "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		// The request has 9 seconds to be judged, but its body is only read.
		if took := time.Since(start); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), "timeout") || took != bodyTimeout {
			t.Errorf("after %s: %d %s %v", took, res.StatusCode, b, err)
		}
	})
}
