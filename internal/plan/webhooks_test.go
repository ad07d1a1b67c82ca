// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// judge is a manifest that judges webs of its own group and some other resources.
func judge(hooks ...string) *abi.Manifest {
	m := &abi.Manifest{For: &abi.Watch{Group: "example.dev", Version: "v1", Kind: "Web"}}
	for _, h := range hooks {
		f := strings.Fields(h) // path type group resource
		w := abi.Webhook{Path: f[0], Type: abi.WebhookType(f[1])}
		for _, resource := range f[3:] {
			w.Rules = append(w.Rules, abi.WebhookRule{
				Groups: []string{strings.Trim(f[2], "_")}, Versions: []string{"v1"}, Resources: []string{resource}, Operations: []abi.Operation{"*"},
			})
		}
		m.Webhooks = append(m.Webhooks, w)
	}
	return m
}

func TestPlan_ServesTheWebhooksThatAreGranted(t *testing.T) {
	const own = "\n- {group: example.dev, resource: webs, verbs: [get, list, watch]}"
	for name, tt := range map[string]struct {
		manifest *abi.Manifest
		grant    string // rules; empty grants the manifest
		options  v1alpha1.ControllerSpec
		confine  string
		want     []string // paths and namespaces of webhooks; groups of conversions
		refused  int
	}{
		"all that the manifest requests": {judge("/v validate _ pods", "/d default example.dev webs"), "", v1alpha1.ControllerSpec{}, "", []string{"/v", "/d"}, 0},
		"nothing without its verb": {judge("/v validate _ pods", "/d default _ pods", "/own validate example.dev webs"), own + `
- {resource: pods, verbs: [validate]}`, v1alpha1.ControllerSpec{}, "", []string{"/v"}, 2},
		"every verb of the API is none of webhooks": {judge("/v validate _ pods"), own + `
- {resource: pods, verbs: ["*"]}`, v1alpha1.ControllerSpec{}, "", nil, 1},
		"all resources of its rules": {judge("/v validate _ pods secrets"), own + `
- {resource: pods, verbs: [validate]}`, v1alpha1.ControllerSpec{}, "", nil, 1},
		"a subresource is a right of its own": {judge("/v validate _ pods/exec", "/p validate _ pods"), own + `
- {resource: pods, subresources: [exec], verbs: [validate]}`, v1alpha1.ControllerSpec{}, "", []string{"/v"}, 1},
		"some namespaces": {judge("/v validate _ pods secrets"), own + `
- {resource: pods, verbs: [validate, default], namespaces: [a, b]}
- {resource: secrets, verbs: [validate], namespaces: [b, c]}`, v1alpha1.ControllerSpec{}, "", []string{"/v in b"}, 2},
		"a cluster-scoped object is in no namespace": {judge("/v validate _ nodes", "/both validate _ nodes pods"), own + `
- {resource: nodes, verbs: [validate], namespaces: [a]}
- {resource: pods, verbs: [validate], namespaces: [a]}`, v1alpha1.ControllerSpec{}, "", nil, 3},
		"a star needs a star": {judge("/v validate * */*", "/p validate _ pods"), own + `
- {resource: pods, verbs: [validate]}`, v1alpha1.ControllerSpec{}, "", []string{"/p"}, 2},
		"a star covers all": {judge("/v validate * */*", "/p validate _ pods", "/s validate _ pods/scale"), own + `
- {group: "*", resource: "*", verbs: [validate]}
- {group: "*", resource: "*", subresources: ["*"], verbs: [validate]}`, v1alpha1.ControllerSpec{}, "", []string{"/v", "/p", "/s"}, 0},
		"without rules it is not served":    {judge("/v validate _"), "", v1alpha1.ControllerSpec{}, "", nil, 0},
		"the namespaces of the options":     {judge("/v validate _ pods", "/n validate _ nodes"), "", v1alpha1.ControllerSpec{Namespaces: []string{"shop"}}, "", []string{"/v in shop", "/n"}, 0},
		"a tenant has its namespace":        {judge("/v validate _ pods", "/n validate _ nodes", "/all validate * *"), "", v1alpha1.ControllerSpec{}, home, []string{"/v in home", "/all in home"}, 3},
		"a conversion":                      {&abi.Manifest{For: judge().For, Conversions: []abi.Conversions{{Group: "example.dev", Kind: "Web"}}}, "", v1alpha1.ControllerSpec{}, "", []string{"example.dev"}, 0},
		"a conversion is no tenant's":       {&abi.Manifest{For: judge().For, Conversions: []abi.Conversions{{Group: "example.dev", Kind: "Web"}}}, "", v1alpha1.ControllerSpec{}, home, nil, 0},
		"a conversion of a kind to come":    {&abi.Manifest{For: judge().For, Conversions: []abi.Conversions{{Group: "later.dev", Kind: "Late", Versions: []string{"v1"}}}}, own + "\n- {group: later.dev, resource: lates, verbs: [convert]}", v1alpha1.ControllerSpec{}, "", []string{"later.dev"}, 0},
		"a conversion needs its own verb":   {&abi.Manifest{For: judge().For, Conversions: []abi.Conversions{{Group: "example.dev", Kind: "Web"}}}, own, v1alpha1.ControllerSpec{}, "", nil, 1},
		"a grant of two rules for one path": {judge("/v validate _ pods"), own + "\n- {resource: pods, verbs: [validate], namespaces: [a]}\n- {resource: pods, verbs: [validate], namespaces: [b]}", v1alpha1.ControllerSpec{}, "", []string{"/v in a,b"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{ControllerSpec: tt.options, Confine: tt.confine, Grant: ofManifest}
			if tt.grant != "" {
				var err error
				if o.Grant, err = ParseGrant("g.yaml", []byte("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:"+tt.grant+"\n")); err != nil {
					t.Fatal(err)
				}
			}
			p := &Planner{Options: o, Finder: newWorld(), Log: slog.New(slog.DiscardHandler)}
			kind, err := p.Kind(t.Context(), tt.manifest)
			if err != nil {
				t.Fatal(err)
			}
			next, err := p.Plan(t.Context(), kind, tt.manifest)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range next.Webhooks {
				text := w.Path
				if len(w.In) > 0 {
					text += " in " + strings.Join(w.In, ",")
					if !strings.Contains(w.Namespaces, "kubernetes.io/metadata.name in ("+strings.Join(w.In, ", ")+")") || w.Rules[0].Scope != "Namespaced" {
						t.Errorf("%s is not narrowed: %+v", w.Path, w.Webhook)
					}
				}
				got = append(got, text)
			}
			for _, c := range next.Conversions {
				got = append(got, c.Group)
			}
			refused := slices.DeleteFunc(next.Refused, func(c abi.Capability) bool { return len(c.Verbs) != 1 })
			if diff := cmp.Diff(tt.want, got); diff != "" || len(refused) != tt.refused {
				t.Errorf("%s\nrefused: %v", diff, kubeapi.NewPolicy(next.Refused).Describe())
			}
			if rbac, err := grant.YAML(grant.RBAC(grant.Account{Name: "x"}, next.Rights)); err != nil || strings.Contains(string(rbac), "validate") || strings.Contains(string(rbac), "convert") {
				t.Errorf("RBAC: %s, %v", rbac, err)
			}
		})
	}
}

// TestPlan_WebhooksAreRights: a module without a grant may not judge any request, and a module that is
// swapped in may not judge more than the first one.
func TestPlan_WebhooksAreRights(t *testing.T) {
	m := judge("/v validate _ pods")
	p := &Planner{Options: Options{}, Finder: newWorld(), Log: slog.New(slog.DiscardHandler)}
	if _, err := p.Kind(t.Context(), m); failure.Of(err) != failure.Denied || !strings.Contains(err.Error(), "validate v1/pods") && !strings.Contains(err.Error(), "validate pods") {
		t.Errorf("without a grant: %v", err)
	}
	limit := &Limit{Rules: grant.WebhookRules(&m.Webhooks[0])}
	for path, want := range map[string]bool{"/v validate _ pods": true, "/w validate _ pods": true, "/v default _ pods": false, "/v validate _ secrets": false} {
		o := &Options{}
		next, err := o.plan(t.Context(), newWorld(), Watched{}, judge(path))
		if err != nil {
			t.Fatal(err)
		}
		if err := next.WithinLimit(limit); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	m.Capabilities = []abi.Capability{{Resource: "pods", Verbs: []string{"validate"}}}
	p.Grant = ofManifest
	if _, err := p.Plan(t.Context(), Watched{}, m); failure.Of(err) != failure.Module {
		t.Errorf("a capability with the verb of a webhook: %v", err)
	}
}

// TestLeastRights_NameTheConvertedCRDs that are granted.
func TestLeastRights_NameTheConvertedCRDs(t *testing.T) {
	m := judge()
	m.Conversions = []abi.Conversions{{Group: "example.dev", Kind: "Web"}}
	const own = "apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n- {group: example.dev, resource: webs, verbs: [get, list, watch]}\n"
	for text, want := range map[string]string{
		"":  "webs.example.dev",
		own: "",
		own + "- {group: example.dev, resource: webs, verbs: [convert]}\n": "webs.example.dev",
	} {
		var o Options
		if text != "" {
			g, err := ParseGrant("grant", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			o.Grant = g
		}
		least, err := LeastRights(t.Context(), o, "web", newWorld(), Asking{Manifest: m, CanCall: func(abi.Op) bool { return true }})
		if err != nil || strings.Join(least.Converts, " ") != want {
			t.Errorf("%q: %+v, %v", text, least, err)
		}
	}
}

// TestPlan_SaysWhyAWebhookIsNotServed: it is not granted, or is none that the options allow.
func TestPlan_SaysWhyAWebhookIsNotServed(t *testing.T) {
	m := judge("/v validate _ pods")
	m.Conversions = []abi.Conversions{{Group: "example.dev", Kind: "Web"}}
	g, err := ParseGrant("grant", []byte("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n- {group: example.dev, resource: webs, verbs: [get, list, watch]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for confine, never := range map[string]bool{"": false, "home": true} {
		p := &Planner{Options: Options{Grant: g, Confine: confine}, Finder: newWorld(), Log: slog.New(slog.DiscardHandler)}
		kind, err := p.Kind(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		next, err := p.Plan(t.Context(), kind, m)
		if err != nil {
			t.Fatal(err)
		}
		if u := next.Unserved; len(u) != 2 || u[0].Webhook == nil || u[0].Never || u[0].Why == "" || u[1].Conversion == nil || u[1].Never != never || u[1].Why == "" {
			t.Errorf("in %q: %+v", confine, u)
		}
		if lacks := strings.Contains(fmt.Sprint(kubeapi.NewPolicy(next.Refused).Describe()), "convert"); lacks == never {
			t.Errorf("in %q: refused %+v", confine, next.Refused)
		}
	}
}

// reviews answers access reviews: verbs and resources that are allowed, as "get pods".
type reviews []string

func (r reviews) RoundTrip(req *http.Request) (*http.Response, error) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		return nil, err
	}
	a := review.Spec.ResourceAttributes
	review.Status.Allowed = slices.Contains(r, strings.TrimSpace(a.Verb+" "+a.Resource+" "+a.Namespace))
	body, err := json.Marshal(&review)
	header := http.Header{"Content-Type": []string{"application/json"}}
	return &http.Response{StatusCode: http.StatusCreated, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, err
}

// TestLimitWebhooks_NeverBeyondTheRightsOfTheUser: an impersonated user has no webhook for objects that it
// may not read, and changes none that it may not write. The grant alone decides without impersonation.
func TestLimitWebhooks_NeverBeyondTheRightsOfTheUser(t *testing.T) {
	m := judge("/v validate _ pods", "/d default _ pods", "/s validate _ secrets", "/here validate example.dev webs")
	m.Conversions = []abi.Conversions{{Group: "example.dev", Kind: "Web"}}
	for user, want := range map[string][]string{"": {"/v", "/d", "/s", "/here", "Web"}, "system:serviceaccount:home:app": {"/v", "/here"}} {
		client, err := kubeapi.NewClient(&rest.Config{Host: "http://memory", Transport: reviews{"get pods", "get webs home", "get webs"}})
		if err != nil {
			t.Fatal(err)
		}
		access := &Access{User: user, Client: client}
		o := &Options{}
		p, err := o.plan(t.Context(), newWorld(), Watched{}, m)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Webhooks {
			p.Webhooks = append(p.Webhooks, Webhook{Webhook: m.Webhooks[i]})
		}
		p.Webhooks[3].In, p.Conversions = []string{"home"}, slices.Clone(m.Conversions)
		limited := access.LimitWebhooks(t.Context(), p)
		var got []string
		for _, w := range p.Webhooks {
			got = append(got, w.Path)
		}
		for _, c := range p.Conversions {
			got = append(got, c.Kind)
		}
		if diff := cmp.Diff(want, got); diff != "" || (limited == nil) != (user == "") {
			t.Errorf("user %q: %s\n%v", user, diff, limited)
		}
		if limited != nil && (!strings.Contains(limited.Error(), "webhook /s") || strings.Contains(limited.Error(), "/v ")) {
			t.Errorf("%v", limited)
		}
	}
}
