// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/base64"
	"fmt"
	"net"
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
func (m *cluster) serve(controller, prefix, digest string) (remove func()) {
	b := &backend{}
	b.routes.Store(&webhook.Routes{
		Webhooks:    []abi.Webhook{{Type: abi.WebhookValidate, Path: "/validate", Rules: []abi.WebhookRule{rule("example.dev", "apps")}}},
		Conversions: []abi.Conversions{{Group: "example.dev", Kind: "App"}},
		Owned:       []schema.GroupKind{{Group: "example.dev", Kind: "App"}},
		Digest:      digest,
	})
	return m.server.Add(controller, prefix, b)
}

// registrar returns a Registrar whose server has answered.
func (m *cluster) registrar(o Options, a *certs.Authority) *Registrar {
	m.Helper()
	r, err := New(Config{
		Options: o, RESTConfig: &rest.Config{Host: "http://memory", Transport: m.api, QPS: -1}, Namespace: "system", Replica: "replica-1", Authority: a, Server: m.server,
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

// convertedBy returns a CRD that another group converts at a URL.
func convertedBy(url string) string {
	text := strings.Replace(appCRD, "{name", "{labels: {"+label+": wasmctl-other}, name", 1)
	return strings.Replace(text, "{strategy: None}", "{strategy: Webhook, webhook: {clientConfig: {url: '"+url+"/convert', caBundle: BUNDLE}}}", 1)
}

// TestRegistrar_TakesACRDWhoseConverterIsGone: its server refuses connections for long, or its certificates have expired. A server that
// answers, or that is absent for a short time, remains the converter.
func TestRegistrar_TakesACRDWhoseConverterIsGone(t *testing.T) {
	listen := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	alive, dead := listen(), listen()
	_ = dead.Close()
	expired := certs.New(certs.Config{})
	if _, err := expired.Renew(time.Now().Add(-2 * certs.DefaultValidity)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		url    string
		bundle []byte
		absent time.Duration // it was absent before
		taken  bool
	}{
		"alive":                    {"https://" + alive.Addr().String(), nil, silence, false},
		"absent for a short time":  {"https://" + dead.Addr().String(), nil, silence - time.Minute, false},
		"absent for long":          {"https://" + dead.Addr().String(), nil, silence, true},
		"its certificates expired": {"https://" + alive.Addr().String(), expired.Published(), 0, true},
		"others' certificates":     {"https://" + alive.Addr().String(), []byte("of cert-manager"), 0, false},
	} {
		m := newCluster(t, strings.ReplaceAll(convertedBy(c.url), "BUNDLE", base64.StdEncoding.EncodeToString(c.bundle)))
		m.serve("app", "", "sha256:1")
		r := m.registrar(*inService, certs.New(certs.Config{}))
		r.absent["apps.example.dev"] = time.Now().Add(-c.absent)
		err := r.round(t.Context(), r.sources())
		crd := m.get(r, crds, "apps.example.dev")
		if taken := crd.GetLabels()[label] == inService.mark() && len(r.cfg.clients(crd)) == 1; taken != c.taken || (err == nil) != c.taken {
			t.Errorf("%s: taken %v, %v", name, taken, err)
		}
	}
}

// TestOptions_AbsentIsOnlyCertain: a process outside of the cluster cannot tell whether a Service exists.
func TestOptions_AbsentIsOnlyCertain(t *testing.T) {
	service := map[string]any{"service": map[string]any{"namespace": "gone", "name": "hook"}}
	if outside := (&Options{URL: "https://127.0.0.1:9443"}); outside.absent(t.Context(), service) || !outside.absent(t.Context(), nil) {
		t.Error("a Service is absent, or a converter without an address is not")
	}
}

// TestRegistrar_ReleasesTheCRD when the last replica ends, and when no controller converts its objects any more. The conversion remains.
func TestRegistrar_ReleasesTheCRD(t *testing.T) {
	m := newCluster(t, appCRD)
	remove := m.serve("app", "", "sha256:1")
	r := m.registrar(*inService, certs.New(certs.Config{}))
	owned := func(what string, want bool) {
		t.Helper()
		crd := m.get(r, crds, "apps.example.dev")
		if owned := crd.GetLabels()[label] != ""; owned != want || len(r.cfg.clients(crd)) != 1 {
			t.Errorf("%s: owned %v, calls %d", what, owned, len(r.cfg.clients(crd)))
		}
	}
	round := func() {
		t.Helper()
		if err := r.round(t.Context(), r.sources()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	owned("registered", true)
	remove()
	round()
	owned("the controller may come back soon after a start", true)
	r.opened = time.Now().Add(-settled)
	round()
	owned("without a controller", false)
	m.serve("app", "", "sha256:1")
	round()
	owned("registered again", true)
	if err := r.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	owned("ended", false)
}

// TestRegistrar_LeavesOutWhatDoesNotFit: a configuration stays within its limit, those that are registered remain, and each other one is
// reported for its controller.
func TestRegistrar_LeavesOutWhatDoesNotFit(t *testing.T) {
	m := newCluster(t)
	big := func(controller string) {
		b := &backend{}
		routes := &webhook.Routes{Digest: "sha256:1"}
		for i := range 3 {
			routes.Webhooks = append(routes.Webhooks, abi.Webhook{
				Type: abi.WebhookValidate, Path: fmt.Sprint("/", i), Rules: []abi.WebhookRule{rule("example.dev", "apps")},
				Conditions: []abi.MatchCondition{{Name: "x", Expression: strings.Repeat("x", 20<<10)}},
			})
		}
		b.routes.Store(routes)
		m.server.Add(controller, "/"+controller, b)
	}
	for i := range 18 {
		big(fmt.Sprintf("m%02d", i))
	}
	r := m.registrar(*inService, certs.New(certs.Config{}))
	if err := r.round(t.Context(), r.sources()); err != nil {
		t.Fatal(err)
	}
	since := r.last.states["m17"][webhook.Name("/m17/2")].Since
	big("a0") // sorted before the others
	for i := range 2 {
		err := r.round(t.Context(), r.sources())
		if err == nil || !strings.Contains(err.Error(), "the configuration is full") {
			t.Errorf("round %d: %v", i, err)
		}
		configuration := m.get(r, validating, r.cfg.Name)
		text, _ := configuration.MarshalJSON()
		hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
		if len(text) > maxConfiguration || len(hooks) < 3*18 {
			t.Errorf("%d bytes, %d webhooks", len(text), len(hooks))
		}
		left := 0
		for _, s := range r.last.states["a0"] {
			if s.Err != nil && s.Since.IsZero() {
				left++
			}
		}
		if last := r.last.states["m17"][webhook.Name("/m17/2")]; last.Err != nil || last.Since != since || since.IsZero() || left != 3*19-len(hooks) || left == 0 {
			t.Errorf("the last one is %+v, %d of the new controller are left out", last, left)
		}
	}
}

// TestRegistrar_States: what is registered, and why something is not.
func TestRegistrar_States(t *testing.T) {
	m := newCluster(t, strings.Replace(appCRD, "{name", "{labels: {"+label+": wasmctl-other}, name", 1))
	m.serve("app", "", "sha256:1")
	m.serve("again", "", "sha256:2")
	r := m.registrar(*inService, certs.New(certs.Config{}))
	if s, err := r.States("app"); s != nil || err != nil {
		t.Error("states before the first round")
	}
	r.report(r.round(t.Context(), r.sources()))
	for _, c := range []struct {
		controller, name, why string
	}{
		{"app", "webhook /validate", ""},
		{"app", "the conversion of App.example.dev", "wasmctl-other converts its objects"},
		{"again", "webhook /validate", "controller app declares it too"},
		{"again", "the conversion of App.example.dev", "controller app declares it too"},
	} {
		states, _ := r.States(c.controller)
		s, ok := states[c.name]
		if !ok || s.Since.IsZero() != (c.why != "") || (s.Err != nil) != (c.why != "") || s.Err != nil && !strings.Contains(s.Err.Error(), c.why) {
			t.Errorf("%s: %s: %+v", c.controller, c.name, s)
		}
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
