// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of a connection. Anybody who reaches the address may connect.
const (
	bodyTimeout  = 30 * time.Second // counts from the end of the headers
	writeTimeout = 90 * time.Second // counts from the end of the headers
	// idleTimeout is how long a connection may have no request, before the first one too. It is longer than the 90 seconds after which the
	// API server closes connections. If the server closed one first, a request that is sent at that time would fail, and the API server does
	// not repeat it on a connection that it has opened in advance.
	idleTimeout = 2 * time.Minute
	maxHeader   = 64 << 10 // bytes
	// drainTimeout is how long requests in progress may take after a stop. It is more than the API server waits for any of them.
	drainTimeout = 35 * time.Second
)

// Listen opens the address, unless it is open already. Run calls it too; a caller that wants to know early whether the address is free calls
// it before.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return fmt.Errorf("webhook server: cannot listen: %w; choose another address", err)
	}
	s.listener = l
	return nil
}

// Addr returns the open address, or nil before Listen.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Run serves until ctx ends. It returns after the requests in progress have been answered.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	listener := s.listener
	s.mu.Unlock()
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.cfg.GetCertificate, ClientCAs: s.cfg.Clients}
	if s.cfg.Clients != nil {
		config.ClientAuth = tls.VerifyClientCertIfGiven // what a client may do without one depends on its request
	}
	var protocols http.Protocols // the API server uses HTTP/1.1, and HTTP/2 would be one more surface
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: s, TLSConfig: config, Protocols: &protocols, ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: idleTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
	serving, end := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-serving.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close() // its error adds nothing to that of Shutdown
		}
	}()
	err := server.ServeTLS(listener, "", "")
	end()
	<-stopped
	if ctx.Err() == nil {
		return fmt.Errorf("webhook server: %w", err)
	}
	return nil
}
