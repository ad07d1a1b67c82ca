// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/internal/adminserver"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/webhook"
	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
	"github.com/wasmctl/wasmctl/runtime/webhook/registration"
)

// Webhooks configures the server of the webhooks that modules have: the API server calls it to validate, default and convert objects.
type Webhooks struct {
	// Address is the address to listen on, such as ":9443".
	Address string
	// Service is where the API server reaches the server, and URL is the same for a process outside of the cluster. If both are empty, it is
	// https:// and the Address.
	Service WebhookService
	URL     string
	// CertDir has tls.crt and tls.key, as cert-manager mounts them. If it is empty, the process makes its own certificates, and publishes
	// their CA.
	CertDir string
	// ClientCA is a file of certificates in PEM. If it is not empty, a client that requests an admission must have a certificate that one of
	// them has signed, and, if ClientName is not empty, with that common name.
	ClientCA, ClientName string
	// Unregistered leaves the webhook configurations and the CRDs of the cluster to others: only their caBundle is written. Otherwise the
	// process writes those of its modules.
	Unregistered bool
	// Name is that of the webhook configurations, and of the ConfigMap with the certificates. It is the same for all replicas, and no other
	// group of processes has it.
	Name string
}

// WebhookService is a Service of the cluster.
type WebhookService struct {
	Namespace, Name string
	Port            int32 // 443 if 0
}

// withdrawal is how long a replica that stops still answers calls through the Service: the API server learns late that its pod ends.
const withdrawal = 5 * time.Second

// hooks serves the webhooks of the modules of a Runtime: it consists of the server, its certificates, and their registration.
type hooks struct {
	options   *Webhooks
	namespace string // of the ConfigMap with the certificates
	cluster   *rest.Config
	log       *slog.Logger
	server    *webhook.Server
	metrics   *webhook.Metrics
	authority *certs.Authority // nil with a directory
	directory *certs.Directory // nil without one

	registrar atomic.Pointer[registration.Registrar] // nil before run
}

// newHooks returns the hooks for options.
func newHooks(cluster *rest.Config, o *Webhooks, log *slog.Logger) (h *hooks, err error) {
	h = &hooks{options: o, cluster: cluster, log: log}
	cfg := webhook.Config{Address: o.Address, Logger: log, ClientName: o.ClientName}
	if o.ClientCA != "" {
		pem, err := os.ReadFile(o.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("webhooks: client CA: %w", err)
		}
		if cfg.Clients = x509.NewCertPool(); !cfg.Clients.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("webhooks: client CA %s: it has no certificate in PEM", o.ClientCA)
		}
	}
	if o.CertDir != "" {
		if h.directory, err = certs.NewDirectory(o.CertDir, log); err != nil {
			return nil, err
		}
		cfg.GetCertificate = h.directory.GetCertificate
	} else {
		h.authority = certs.New(certs.Config{Replica: hostName(), Hosts: o.hosts()})
		cfg.GetCertificate = h.authority.GetCertificate
	}
	h.metrics = webhook.NewMetrics(cfg.GetCertificate)
	cfg.Metrics = h.metrics
	h.server = webhook.New(cfg)
	return h, nil
}

// prepareHooks prepares the webhooks if the options have them, and returns their metrics.
func (rt *Runtime) prepareHooks(cluster *rest.Config) (counts []prometheus.Collector, err error) {
	if rt.opts.Webhooks == nil {
		return nil, nil
	}
	if rt.hooks, err = newHooks(cluster, rt.opts.Webhooks, rt.log); err != nil {
		return nil, err
	}
	rt.hooks.namespace = cmp.Or(rt.opts.Webhooks.Service.Namespace, cmp.Or(rt.opts.Election, &Election{}).namespace())
	return []prometheus.Collector{rt.hooks.metrics}, nil
}

// hostName returns the name of the pod or host of this process; it is empty if there is none.
func hostName() string {
	host, _ := os.Hostname()
	return host
}

// replicaName returns the name among its replicas of a process that listens at an address: the host, the IP address and the port. No two
// processes listen at one address, also not on the same host, and a process that is restarted has its name again.
func replicaName(listens net.Addr) string {
	ip, port, _ := net.SplitHostPort(listens.String()) // it has both, because it is open
	if net.ParseIP(ip).IsUnspecified() {
		addresses, _ := net.InterfaceAddrs() // without one, the host must do
		ip = ""
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && ip == "" && n.IP.IsGlobalUnicast() {
				ip = n.IP.String()
			}
		}
	}
	return leaseName(hostName() + "-" + ip + "-" + port)
}

// hosts returns the names and addresses under which the API server calls this process.
func (o *Webhooks) hosts() []string {
	if s := o.Service; s.Name != "" {
		name := s.Name + "." + s.Namespace + ".svc"
		return []string{name, name + ".cluster.local"}
	}
	if u, err := url.Parse(o.URL); err == nil && u.Hostname() != "" {
		return []string{u.Hostname()}
	}
	host, _, _ := net.SplitHostPort(o.Address) // the server reports a wrong address
	return []string{host}
}

// registration returns the options of the registration of a server that listens at an address.
func (o *Webhooks) registration(address net.Addr) registration.Options {
	return registration.Options{
		Name: o.Name, URL: cmp.Or(o.URL, "https://"+address.String()), BundlesOnly: o.Unregistered,
		Service: registration.Service{Namespace: o.Service.Namespace, Name: o.Service.Name, Port: cmp.Or(o.Service.Port, 443)},
	}
}

// start begins to serve. stop ends that in order: first the API server is no longer sent to this process, then the requests in progress are
// answered. It waits less if force is closed.
func (h *hooks) start(ctx context.Context) (stop func(force <-chan struct{}), err error) {
	none := func(<-chan struct{}) {}
	if h == nil {
		return none, nil
	}
	if err := h.server.Listen(ctx); err != nil {
		return none, failure.Listen.Wrap(err)
	}
	registrar, err := registration.New(registration.Config{
		Options: h.options.registration(h.server.Addr()), RESTConfig: h.cluster, Replica: replicaName(h.server.Addr()), Authority: h.authority, Server: h.server,
		Namespace: h.namespace, Logger: h.log,
	})
	if err != nil {
		return none, err
	}
	h.registrar.Store(registrar)
	h.log.Info("serving webhooks", "address", h.server.Addr().String())
	running := context.WithoutCancel(ctx)
	serve := h.background(running, "webhook server", h.server.Run)
	follow := func() {}
	if h.directory != nil {
		follow = h.background(running, "webhook certificate", h.directory.Run)
	}
	register := h.background(running, "webhook registration", registrar.Run)
	return func(force <-chan struct{}) {
		register()
		if h.options.Service.Name != "" {
			select {
			case <-time.After(withdrawal):
			case <-force:
			}
		}
		serve()
		follow()
	}, nil
}

// background runs a part until the returned function is called, which waits for its end.
func (h *hooks) background(ctx context.Context, what string, run func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := run(ctx); err != nil {
			h.log.Error(what+" ended", "error", err.Error())
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// of returns what is known about the webhooks of a controller.
func (h *hooks) of(controller string) (out adminserver.Hooks) {
	if h == nil {
		out.Missing = "the process serves no webhooks: start it with --webhook-address"
		return out
	}
	registrar := h.registrar.Load()
	if registrar == nil {
		out.Missing = "the server of webhooks has not started"
		return out
	}
	var err error
	switch out.States, err = registrar.States(controller); {
	case err != nil:
		out.Missing = err.Error()
	case h.options.Unregistered:
		out.Missing = "no configuration calls it, and wasmctl writes none (--webhook-register=false)"
	}
	return out
}

// ready returns an error unless the API server can call this process.
func (h *hooks) ready() error {
	registrar := h.registrar.Load()
	if registrar == nil {
		return errors.New("not started yet")
	}
	return registrar.Ready()
}
