// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/webhook"
	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
)

// cluster is an API server in memory that knows CRDs and the kind App.
type cluster struct {
	*testing.T

	api    *memapi.Server
	server *webhook.Server
}

func newCluster(t *testing.T, objects ...string) *cluster {
	t.Helper()
	api := memapi.New(memapi.Config{Kinds: []memapi.Kind{
		memapi.GuessKind(crds.GroupVersion().WithKind("CustomResourceDefinition"), false),
		memapi.GuessKind(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "App"}, true),
	}})
	m := &cluster{t, api, webhook.New(webhook.Config{})}
	for _, text := range objects {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if err := api.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// serve adds a controller with a webhook for its own kind, which it also converts.
func (m *cluster) serve(controller, prefix, digest string) {
	b := &backend{}
	b.routes.Store(&webhook.Routes{
		Webhooks:    []abi.Webhook{{Type: abi.WebhookValidate, Path: "/validate", Rules: []abi.WebhookRule{rule("example.dev", "apps")}}},
		Conversions: []abi.Conversions{{Group: "example.dev", Kind: "App"}},
		Owned:       []schema.GroupKind{{Group: "example.dev", Kind: "App"}},
		Digest:      digest,
	})
	m.server.Add(controller, prefix, b)
}

// registrar returns a Registrar whose server has answered.
func (m *cluster) registrar(o Options, a *certs.Authority) *Registrar {
	m.Helper()
	r, err := New(Config{
		Options: o, RESTConfig: &rest.Config{Host: "http://memory", Transport: m.api}, Namespace: "system", Replica: "replica-1", Authority: a, Server: m.server,
	})
	if err != nil {
		m.Fatal(err)
	}
	r.opened = time.Now()
	return r
}

func (m *cluster) get(r *Registrar, gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	m.Helper()
	o, err := r.client.Resource(gvr).Get(m.Context(), name, metav1.GetOptions{})
	if err != nil {
		m.Fatal(err)
	}
	return o
}

const appCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.dev}
spec: {conversion: {strategy: None}}
`

var validating = plural(configurations[abi.WebhookValidate])

// TestRegistrar_TouchesNoObjectOfCertManager if it makes certificates itself.
func TestRegistrar_TouchesNoObjectOfCertManager(t *testing.T) {
	m := newCluster(t, strings.Replace(appCRD, "{name", "{annotations: {cert-manager.io/inject-ca-from: a/b}, name", 1))
	m.serve("app", "", "sha256:1")
	r := m.registrar(*inService, certs.New(certs.Config{}))
	before := m.get(r, crds, "apps.example.dev").GetResourceVersion()
	if err := r.round(t.Context(), r.sources()); err == nil || !strings.Contains(err.Error(), "cert-manager") {
		t.Error(err)
	}
	if m.get(r, crds, "apps.example.dev").GetResourceVersion() != before {
		t.Error("the CRD was written")
	}
	if n := len(r.cfg.bundles(m.get(r, validating, r.cfg.Name))); n != 1 {
		t.Errorf("%d webhooks", n)
	}
}

// TestRegistrar_LeavesBundlesOfOthersAlone if the certificate is not its own.
func TestRegistrar_LeavesBundlesOfOthersAlone(t *testing.T) {
	m := newCluster(t, appCRD)
	m.serve("app", "", "sha256:1")
	r := m.registrar(*inService, nil)
	bundle := base64.StdEncoding.EncodeToString([]byte("of cert-manager"))
	for range 2 {
		if err := r.round(t.Context(), r.sources()); err != nil {
			t.Fatal(err)
		}
		for _, o := range []*object{{gvr: crds, was: m.get(r, crds, "apps.example.dev")}, {gvr: validating, was: m.get(r, validating, r.cfg.Name)}} {
			clients := r.cfg.clients(o.was)
			if len(clients) != 1 {
				t.Fatalf("%d clients", len(clients))
			}
			if b := clients[0]["caBundle"]; b != nil && b != bundle {
				t.Errorf("bundle %v", b)
			}
			clients[0]["caBundle"] = bundle
			if _, err := r.client.Resource(o.gvr).Update(t.Context(), o.was, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRegistrar_WritesOnlyBundles of webhooks that call this group, if the configurations are the user's.
func TestRegistrar_WritesOnlyBundles(t *testing.T) {
	m := newCluster(t, appCRD, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: wasmctl-system.hook}
webhooks:
- {name: own, clientConfig: {service: {namespace: system, name: hook, path: /x}}}
- {name: foreign, clientConfig: {service: {namespace: other, name: hook, path: /x}}}
`)
	m.serve("app", "", "sha256:1")
	o := *inService
	o.BundlesOnly = true
	r := m.registrar(o, certs.New(certs.Config{}))
	if err := r.round(t.Context(), r.sources()); err != nil {
		t.Fatal(err)
	}
	was := m.get(r, validating, o.Name)
	hooks, _, _ := unstructured.NestedSlice(was.Object, "webhooks")
	first, _, _ := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle")
	_, second, _ := unstructured.NestedString(hooks[1].(map[string]any), "clientConfig", "caBundle")
	if first == "" || second || len(hooks) != 2 {
		t.Errorf("webhooks %v", hooks)
	}
	if strategy, _, _ := unstructured.NestedString(m.get(r, crds, "apps.example.dev").Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("conversion %s", strategy)
	}
	if err := r.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.get(r, validating, o.Name)
}

// TestRegistrar_TakesNoCRDOfAnotherGroup, and says which group converts its objects.
func TestRegistrar_TakesNoCRDOfAnotherGroup(t *testing.T) {
	m := newCluster(t, strings.Replace(appCRD, "{name", "{labels: {"+label+": wasmctl-other}, name", 1))
	m.serve("app", "", "sha256:1")
	r := m.registrar(*inService, certs.New(certs.Config{}))
	if err := r.round(t.Context(), r.sources()); err == nil || !strings.Contains(err.Error(), "wasmctl-other") {
		t.Error(err)
	}
	if n := len(r.cfg.clients(m.get(r, crds, "apps.example.dev"))); n != 0 {
		t.Error("the CRD was written")
	}
}

// TestRegistrar_WaitsForTheTrustOfExistingConfigurations: a replica that joins a group is ready only after its certificate was written and
// the margin has passed, and only the last one that ends removes the configurations.
func TestRegistrar_WaitsForTheTrustOfExistingConfigurations(t *testing.T) {
	m := newCluster(t, appCRD)
	m.serve("app", "/a.app", "sha256:1")
	first := m.registrar(*inService, certs.New(certs.Config{}))
	first.opened, first.cfg.BundlesOnly = time.Time{}, true // it has not called its server yet
	if err := first.round(t.Context(), first.sources()); err != nil || first.Ready() != nil {
		t.Fatal(err, first.Ready())
	}
	first.opened, first.cfg.BundlesOnly = time.Now(), false
	if err := first.round(t.Context(), first.sources()); err != nil {
		t.Fatal(err)
	}
	second := m.registrar(*inService, certs.New(certs.Config{Margin: time.Hour}))
	second.record.replica, second.cfg.Replica, second.opened, second.cfg.Server = "replica-2", "replica-2", time.Time{}, webhook.New(webhook.Config{})
	if err := second.round(t.Context(), second.sources()); err != nil {
		t.Fatal(err)
	}
	if second.Ready() == nil {
		t.Error("ready before the margin has passed")
	}
	bundles := second.cfg.bundles(m.get(first, validating, first.cfg.Name))
	if n := strings.Count(string(bundles[0]), "BEGIN"); len(bundles) != 1 || n != 2 {
		t.Errorf("%d bundles, %d certificates", len(bundles), n)
	}
	second.opened = time.Now() // it does not know the controllers yet
	if err := second.round(t.Context(), second.sources()); err != nil {
		t.Fatal(err)
	}
	if err := first.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.get(first, validating, first.cfg.Name)
	second.opened = time.Now().Add(-settled)
	if err := second.round(t.Context(), second.sources()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.client.Resource(validating).Get(t.Context(), first.cfg.Name, metav1.GetOptions{}); err == nil {
		t.Error("the webhooks of a controller that is gone remain")
	}
}
