// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wasmctl/wasmctl"
)

// Webhooks has the flags of the server of webhooks.
type Webhooks struct {
	address, service, url, certDir string
	clientCA, clientName           string
	register                       bool
}

// WebhookFlags are the names of the flags.
var WebhookFlags = []string{"webhook-address", "webhook-service", "webhook-url", "webhook-cert-dir", "webhook-client-ca", "webhook-client-name", "webhook-register"}

func (o *Webhooks) bind(f *pflag.FlagSet) {
	f.StringVar(&o.address, "webhook-address", "", `Serve the webhooks of modules over HTTPS on this address, for example :9443 (default: none; with --dev, a free port of this machine if a module has webhooks)`)
	f.StringVar(&o.service, "webhook-service", "", "Let the API server call webhooks through this Service, `NAMESPACE/NAME`[:PORT]; the port is 443 by default")
	f.StringVar(&o.url, "webhook-url", "", "Let the API server call webhooks at this https `URL`, for a process outside of the cluster (default: --webhook-address)")
	f.StringVar(&o.certDir, "webhook-cert-dir", "", "Read tls.crt and tls.key from this `directory`, as cert-manager mounts it (default: the process makes its own certificates)")
	f.StringVar(&o.clientCA, "webhook-client-ca", "", "Judge only requests of clients with a certificate of an authority in this PEM `file` (default: of all clients)")
	f.StringVar(&o.clientName, "webhook-client-name", "", "Require this common `name` in certificates of clients; needs --webhook-client-ca")
	f.BoolVar(&o.register, "webhook-register", true, "Write the webhook configurations, and the conversions of CRDs; if false, apply your own")
}

// ServeLocally serves webhooks on a free port of this machine, unless the flags name an address or turn them off.
func (o *Webhooks) ServeLocally() { o.address = cmp.Or(o.address, "127.0.0.1:0") }

// Serves reports whether webhooks are served.
func (o *Webhooks) Serves() bool { return IsAddress(o.address) }

func (o *Webhooks) validate() error {
	if !o.Serves() {
		for name, value := range map[string]string{"service": o.service, "url": o.url, "cert-dir": o.certDir, "client-ca": o.clientCA} {
			if value != "" {
				return fmt.Errorf("--webhook-%s needs --webhook-address, for example --webhook-address :9443", name)
			}
		}
		return nil
	}
	var errs []error
	if o.clientName != "" && o.clientCA == "" {
		errs = append(errs, errors.New("--webhook-client-name needs --webhook-client-ca: a name that no authority has signed proves nothing"))
	}
	host, _, err := net.SplitHostPort(o.address)
	switch ip := net.ParseIP(host); {
	case err != nil:
		errs = append(errs, fmt.Errorf(`--webhook-address %q: want host:port, :port, or "none"`, o.address))
	case (host == "" || ip.IsUnspecified()) && o.service == "" && o.url == "" && (o.register || o.certDir == ""):
		errs = append(errs, fmt.Errorf("--webhook-address %s has no host that the API server can call: name a Service with --webhook-service, or a URL with --webhook-url", o.address))
	}
	if o.service != "" && o.url != "" {
		errs = append(errs, errors.New("--webhook-service and --webhook-url cannot be combined: the API server uses one of them"))
	}
	if _, err := parseService(o.service); o.service != "" && err != nil {
		errs = append(errs, err)
	}
	if u, err := url.Parse(o.url); o.url != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		errs = append(errs, fmt.Errorf("--webhook-url %q: want https://HOST[:PORT][/PATH]", o.url))
	}
	return errors.Join(errs...)
}

// parseService parses NAMESPACE/NAME[:PORT].
func parseService(text string) (s wasmctl.WebhookService, err error) {
	bad := fmt.Errorf("--webhook-service %q: want NAMESPACE/NAME[:PORT]", text)
	namespace, rest, ok := strings.Cut(text, "/")
	name, port, hasPort := strings.Cut(rest, ":")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1035Label(name)) > 0 {
		return s, bad
	}
	s.Namespace, s.Name, s.Port = namespace, name, 443
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return s, bad
		}
		s.Port = int32(n)
	}
	return s, nil
}

// Options returns the options of the flags, or nil if webhooks are not served. group is the name that all replicas of this process share, and
// other processes do not. The caller must have called validate.
func (o *Webhooks) Options(group string) *wasmctl.Webhooks {
	if !o.Serves() {
		return nil
	}
	out := &wasmctl.Webhooks{Address: o.address, URL: o.url, CertDir: o.certDir, ClientCA: o.clientCA, ClientName: o.clientName, Unregistered: !o.register, Name: "wasmctl-" + strings.TrimPrefix(group, "wasmctl-")}
	if o.service != "" {
		out.Service, _ = parseService(o.service)
		out.Name = WebhookName(out.Service.Namespace, out.Service.Name)
	}
	return out
}

// WebhookName returns the name of the webhook configurations of the replicas behind a Service.
func WebhookName(namespace, service string) string { return "wasmctl-" + namespace + "." + service }
