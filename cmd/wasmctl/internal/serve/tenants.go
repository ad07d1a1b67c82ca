// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host/oci"
)

// Limits of what a tenant can make the process do with registries.
const (
	tenantConnections = 16        // open connections
	forgetTenant      = time.Hour // the longest waiting time of a registry
)

// answerTime is the time after which a registry is reported as unreachable. It is longer than the limit for a
// connection, so that the time does not show whether a port is closed, filtered, or used by another protocol.
const answerTime = 12 * time.Second

// tenants has the state of the pulls of each tenant. It is safe for concurrent use.
type tenants struct {
	mu  sync.Mutex
	all map[string]*tenant // by name; guarded by mu
}

// tenant has the state of the pulls of a tenant.
type tenant struct {
	lane *oci.Lane
	used time.Time // guarded by the mu of tenants
}

// of returns the tenant with a name.
func (s *tenants) of(name string, now time.Time) *tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*tenant{}
	}
	t := s.all[name]
	if t == nil {
		maps.DeleteFunc(s.all, func(_ string, t *tenant) bool { return now.Sub(t.used) > forgetTenant })
		t = &tenant{lane: oci.NewLane(tenantConnections)}
		s.all[name] = t
	}
	t.used = now
	return t
}

// wait returns at a time, or when the context ends.
func wait(ctx context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	<-ctx.Done()
}

// shared is the address space of carriers, which some clusters use for pods.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// barred reports whether a registry that the operator has not named may not have an address: one of this machine or of
// the API server and, if the operator has decided so, any private one.
func (s *Server) barred(ip netip.Addr) bool {
	if s.cfg.PublicRegistries && (ip.IsPrivate() || shared.Contains(ip)) {
		return true
	}
	own, err := net.InterfaceAddrs()
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr() == ip {
			return true
		}
	}
	servers, lookup := apiServer(s.cfg.Cluster)
	return err != nil || lookup != nil || slices.Contains(servers, ip)
}

// apiServer returns the addresses of the API server.
func apiServer(cluster *rest.Config) ([]netip.Addr, error) {
	u, _, err := rest.DefaultServerUrlFor(cluster)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	for i := range ips {
		ips[i] = ips[i].Unmap()
	}
	return ips, err
}
