// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission and conversion webhooks of controllers over HTTPS. It owns the protocol of the API server:
// AdmissionReview, ConversionReview, patches, deadlines and limits. Judging a request and converting an object are up to a Backend.
package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// ConvertPath is the path of conversions, after the prefix of the backend.
const ConvertPath = "/convert"

// Backend judges requests for one controller. Its methods are called concurrently.
type Backend interface {
	// Routes returns what the backend serves now: the same pointer until something changes, and nil before it can serve anything.
	Routes() *Routes
	// Admit judges one request. Webhook is one of Routes().Webhooks.
	Admit(ctx context.Context, w *abi.Webhook, a *abi.Admission) (abi.AdmissionResult, error)
	// Convert returns the objects of c in another version, in their order.
	Convert(ctx context.Context, c *abi.Conversion) ([][]byte, error)
}

// Routes are the webhooks and conversions of one controller that were granted.
type Routes struct {
	Webhooks    []abi.Webhook
	Conversions []abi.Conversions
	// Owned are the kinds that the controller reconciles.
	Owned []schema.GroupKind
	// Digest identifies the live module, for the audit log.
	Digest string
}

// Config configures a Server.
type Config struct {
	// Address is the address to listen on, such as ":9443".
	Address string
	// GetCertificate returns the server's certificate for a handshake.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Clients are the authorities of the certificate that a client must have to request an admission. If nil, it needs none. The API server
	// has no certificate for conversions. ClientName, if not empty, is the common name that the certificate must have.
	Clients    *x509.CertPool
	ClientName string
	// Limits bound the work of the server.
	Limits Limits
	// Logger logs failures. If nil, nothing is logged.
	Logger *slog.Logger
	// Metrics, if not nil, counts requests.
	Metrics *Metrics
}

// Server serves backends. It is safe for concurrent use.
type Server struct {
	cfg    Config
	memory budget // of all requests

	mu       sync.RWMutex
	shares   map[string]*share // by prefix; guarded by mu
	added    int               // number of calls of Add; guarded by mu
	logged   map[string]bool   // conflicts that were logged; guarded by mu
	listener net.Listener      // nil before Listen; guarded by mu
}

// Entry is a backend that is served.
type Entry struct {
	Controller string
	// Prefix precedes the path of each webhook, and ConvertPath.
	Prefix  string
	Backend Backend
	// Conflicts has a message for each path or kind that is not served, because another backend declares it too.
	Conflicts []string
}

// New returns a server without backends.
func New(cfg Config) *Server {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.Metrics = cmp.Or(cfg.Metrics, NewMetrics(cfg.GetCertificate))
	cfg.Limits.setDefaults()
	return &Server{cfg: cfg, memory: budget{limit: cfg.Limits.Memory}, shares: map[string]*share{}, logged: map[string]bool{}}
}

// Add serves a backend until remove is called. The URL of a webhook is the prefix and its path; that of conversions is the prefix and
// ConvertPath. The prefix is empty, or has one or two segments such as "/NAMESPACE/NAME". Each of the accounts is charged for the memory of
// its requests.
func (s *Server) Add(controller, prefix string, b Backend, accounts ...Account) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.shares[prefix]
	if of == nil {
		of = &share{prefix: prefix, series: map[string]bool{}}
		s.shares[prefix] = of
	}
	s.added++
	added := &backend{
		Backend: b, share: of, controller: controller, order: s.added, gate: newGate(s.cfg.Limits.Concurrency, s.cfg.Limits.Queue),
		accounts: append([]Account{&budget{limit: s.cfg.Limits.BackendMemory}, &s.memory}, accounts...),
	}
	of.backends = append(slices.Clip(of.backends), added)
	return func() {
		s.mu.Lock()
		of.backends = slices.DeleteFunc(slices.Clone(of.backends), func(b *backend) bool { return b == added })
		if len(of.backends) == 0 && s.shares[prefix] == of {
			delete(s.shares, prefix)
		}
		s.mu.Unlock()
		s.cfg.Metrics.prune(of, s.paths(prefix))
	}
}

// list returns all backends, in the order of Add.
func (s *Server) list() (list []*backend) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, of := range s.shares {
		list = append(list, of.backends...)
	}
	slices.SortFunc(list, func(a, b *backend) int { return a.order - b.order })
	return list
}

// Backends returns what is served, sorted by prefix and controller. It logs each new conflict.
func (s *Server) Backends() []Entry {
	var entries []Entry
	taken := map[string]string{} // controllers, by what they declare
	for _, b := range s.list() {
		e := Entry{Controller: b.controller, Prefix: b.prefix, Backend: b.Backend}
		for _, what := range b.Routes().Names(b.prefix) {
			if first, conflict := taken[what]; conflict {
				e.Conflicts = append(e.Conflicts, fmt.Sprintf("%s is not served: controller %s declares it too, and was there first", what, first))
				continue
			}
			taken[what] = b.controller
		}
		entries = append(entries, e)
	}
	s.log(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Prefix, b.Prefix), strings.Compare(a.Controller, b.Controller))
	})
	return entries
}

// Name names the webhook with a URL path in messages.
func Name(path string) string { return "webhook " + path }

// ConversionName names a conversion in messages.
func ConversionName(c *abi.Conversions) string {
	return "the conversion of " + schema.GroupKind{Group: c.Group, Kind: c.Kind}.String()
}

// Names returns the names of the webhooks and conversions of a backend with this prefix; none for nil.
func (r *Routes) Names(prefix string) (list []string) {
	if r == nil {
		return nil
	}
	for i := range r.Webhooks {
		if w := &r.Webhooks[i]; len(w.Rules) > 0 {
			list = append(list, Name(prefix+w.Path))
		}
	}
	for i := range r.Conversions {
		list = append(list, ConversionName(&r.Conversions[i]))
	}
	return list
}

// log logs the conflicts that are new.
func (s *Server) log(entries []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]bool{}
	for _, e := range entries {
		for _, c := range e.Conflicts {
			id := e.Prefix + " " + e.Controller + " " + c
			if now[id] = true; !s.logged[id] {
				s.cfg.Logger.Error("webhooks conflict", "controller", e.Controller, "error", c)
			}
		}
	}
	s.logged = now
}
