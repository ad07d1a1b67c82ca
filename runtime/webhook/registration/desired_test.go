// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

var all = []abi.Operation{abi.OperationCreate, abi.OperationUpdate}

// rule returns a rule for the resources of a group.
func rule(group string, resources ...string) abi.WebhookRule {
	return abi.WebhookRule{Groups: []string{group}, Versions: []string{"v1"}, Resources: resources, Operations: all}
}

// source returns a controller of apps.example.dev.
func source(controller, prefix string, hooks ...abi.Webhook) Source {
	return Source{
		Entry:  webhook.Entry{Controller: controller, Prefix: prefix},
		Routes: &webhook.Routes{Webhooks: hooks, Digest: "sha256:1"},
		Owned:  []schema.GroupResource{{Group: "example.dev", Resource: "apps"}},
	}
}

var inService = &Options{Name: "wasmctl-system.hook", Service: Service{Namespace: "system", Name: "hook", Port: 443}}

// cases are controllers, and the options of their group.
func cases() map[string]struct {
	o       *Options
	sources []Source
} {
	full := abi.Webhook{
		Type: abi.WebhookDefault, Path: "/mutate-example-dev-v1-app", Name: "apps.example.dev", Rules: []abi.WebhookRule{rule("example.dev", "apps", "apps/scale")},
		FailurePolicy: "Ignore", MatchPolicy: "Exact", Reinvocation: "IfNeeded", Timeout: 3, Namespaces: "team in (a, b), !legacy", Objects: "tier=web",
		Conditions: []abi.MatchCondition{{Name: "user", Expression: "request.userInfo.username != 'root'"}},
	}
	own := abi.Webhook{Type: abi.WebhookValidate, Path: "/validate-example-dev-v1-app", Rules: []abi.WebhookRule{rule("example.dev", "apps")}}
	pods := abi.Webhook{Type: abi.WebhookValidate, Path: "/pods", Rules: []abi.WebhookRule{rule("", "pods"), {Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*"}, Operations: []abi.Operation{"*"}, Scope: "Cluster"}}}
	none := abi.Webhook{Type: abi.WebhookValidate, Path: "/none"}
	tenant := source("team-a/web", "/team-a.web", own, pods, full)
	second := source("other", "", own)
	second.Conflicts = []string{"webhook /validate-example-dev-v1-app is not served: controller app declares it too, and was there first"}
	return map[string]struct {
		o       *Options
		sources []Source
	}{
		"url":     {&Options{Name: "wasmctl-dev", URL: "https://127.0.0.1:9443"}, []Source{source("app", "", own, none), second}},
		"service": {inService, []Source{source("app", "", full, own, pods)}},
		"tenants": {inService, []Source{tenant}},
	}
}

// TestDesired_Golden compares the webhooks with testdata; WASMCTL_UPDATE=1 writes them.
func TestDesired_Golden(t *testing.T) {
	for name, c := range cases() {
		hooks, failed := desired(c.sources, c.o, nil)
		if len(failed) > 0 {
			t.Fatal(name, failed)
		}
		got, err := yaml.Marshal(hooks)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".yaml")
		if os.Getenv("WASMCTL_UPDATE") != "" {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v: got\n%s", name, err, got)
		}
	}
}

// TestDesired_OneBadWebhookLeavesTheOthers: each webhook that cannot be registered is reported.
func TestDesired_OneBadWebhookLeavesTheOthers(t *testing.T) {
	hook := func(path string, change func(*abi.Webhook)) abi.Webhook {
		w := abi.Webhook{Type: abi.WebhookValidate, Path: path, Rules: []abi.WebhookRule{rule("example.dev", "apps")}}
		change(&w)
		return w
	}
	s := source("app", "",
		hook("/a", func(w *abi.Webhook) { w.Namespaces = "a in" }),
		hook("/b", func(w *abi.Webhook) { w.Objects = "a > 5" }),
		hook("/c", func(w *abi.Webhook) {
			w.Conditions = []abi.MatchCondition{{Name: "huge", Expression: strings.Repeat("x", maxSize)}}
		}),
		hook("/d", func(w *abi.Webhook) { w.Name = "refused" }),
		hook("/e", func(*abi.Webhook) {}),
	)
	before, _ := desired([]Source{source("app", "", s.Routes.Webhooks[3])}, inService, nil)
	refused := map[string]error{key(before[abi.WebhookValidate][0].(map[string]any)): errors.New("not a qualified name")}
	s.Routes.Webhooks[2], s.Routes.Webhooks[4] = s.Routes.Webhooks[4], s.Routes.Webhooks[2] // the huge one takes all that is left
	hooks, failed := desired([]Source{s}, inService, refused)
	err := failed.err()
	if n := len(hooks[abi.WebhookValidate]); n != 1 || err == nil {
		t.Fatalf("%d webhooks, %v", n, err)
	}
	for _, path := range []string{"[/a]", "[/b]", "[/c]", "[/d]: not a qualified name"} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("no error about %s: %v", path, err)
		}
	}
}

// TestDesired_NamesAreUnique also for names that tenants choose, and for long ones.
func TestDesired_NamesAreUnique(t *testing.T) {
	w := abi.Webhook{Type: abi.WebhookValidate, Name: "same.example.dev", Rules: []abi.WebhookRule{rule("", "pods")}}
	var hooks []abi.Webhook
	for _, path := range []string{"/a", "/b", "/c"} {
		w.Path = path
		hooks = append(hooks, w)
	}
	hooks[2].Name = ""
	long := "/" + strings.Repeat("a", 63) + "." + strings.Repeat("b", 230)
	got, failed := desired([]Source{source("x", "", hooks...), source("x", "/t.x", hooks...), source("x", "/t", hooks...), source("long", long, hooks...)}, inService, nil)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	names := map[any]bool{}
	for _, h := range got[abi.WebhookValidate] {
		name := h.(map[string]any)["name"].(string)
		if names[name] || len(name) > maxName || strings.Count(name, ".") < 2 {
			t.Errorf("name %q", name)
		}
		names[name] = true
	}
	if len(names) != 12 {
		t.Errorf("%d names", len(names))
	}
}
