// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Server represents an HTTP server that a manager starts. A module does not
// serve it.
type Server struct {
	Name                string
	Server              *http.Server
	Listener            net.Listener
	OnlyServeWhenLeader bool
	ShutdownTimeout     *time.Duration
}

// Start waits until ctx is done.
func (*Server) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns OnlyServeWhenLeader.
func (s *Server) NeedLeaderElection() bool { return s.OnlyServeWhenLeader }
