// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl"
)

func TestWebhooks_Validate(t *testing.T) {
	for _, c := range []struct {
		o    Webhooks
		want string // part of the error
	}{
		{Webhooks{}, ""},
		{Webhooks{address: "none"}, ""},
		{Webhooks{address: ":9443", service: "ops/web:8443"}, ""},
		{Webhooks{address: "127.0.0.1:0", url: "https://host.example:9443/a"}, ""},
		{Webhooks{address: "127.0.0.1:0", register: true}, ""},
		{Webhooks{address: ":9443", certDir: "certs"}, ""},
		{Webhooks{address: ":9443"}, "has no host"},
		{Webhooks{address: "[::]:9443", certDir: "certs", register: true}, "has no host"},
		{Webhooks{address: "9443"}, `--webhook-address "9443"`},
		{Webhooks{service: "ops/web"}, "--webhook-service needs --webhook-address"},
		{Webhooks{address: "none", certDir: "dir"}, "--webhook-cert-dir needs --webhook-address"},
		{Webhooks{address: ":9443", service: "ops/web", url: "https://host"}, "cannot be combined"},
		{Webhooks{address: ":9443", service: "web"}, "want NAMESPACE/NAME[:PORT]"},
		{Webhooks{address: ":9443", service: "ops/web:0"}, "want NAMESPACE/NAME[:PORT]"},
		{Webhooks{address: ":9443", service: "ops/web:65536"}, "want NAMESPACE/NAME[:PORT]"},
		{Webhooks{address: ":9443", url: "http://host"}, "want https://"},
		{Webhooks{address: ":9443", url: "https://user@host"}, "want https://"},
		{Webhooks{address: ":9443", url: "https://host?a=b"}, "want https://"},
	} {
		err := c.o.validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestWebhooks_ServeLocallyUnlessAFlagDecides(t *testing.T) {
	for address, want := range map[string]string{"": "127.0.0.1:0", "none": "none", "127.0.0.1:9443": "127.0.0.1:9443"} {
		o := Webhooks{address: address, register: true}
		if o.ServeLocally(); o.address != want || o.validate() != nil || o.Serves() != (want != "none") {
			t.Errorf("%q: %q, want %q", address, o.address, want)
		}
	}
}

func TestWebhooks_OptionsNameTheGroup(t *testing.T) {
	if o := (&Webhooks{address: "none"}).Options("a"); o != nil {
		t.Errorf("not served: %+v", o)
	}
	o := (&Webhooks{address: ":1", service: "ops/web", register: true}).Options("wasmctl-serve")
	if want := (wasmctl.WebhookService{Namespace: "ops", Name: "web", Port: 443}); o.Service != want || o.Name != "wasmctl-ops.web" || o.Unregistered {
		t.Errorf("behind a Service: %+v", o)
	}
	if o := (&Webhooks{address: ":1"}).Options("wasmctl-serve"); o.Name != "wasmctl-serve" || !o.Unregistered {
		t.Errorf("outside of a cluster: %+v", o)
	}
}
