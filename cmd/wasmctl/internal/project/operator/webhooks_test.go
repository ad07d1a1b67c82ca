// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestWebhooks_OfMarkersAndFiles: a file of --roles takes precedence over the generated one, and
// that over the markers. Several webhooks of one path are one with all rules.
func TestWebhooks_OfMarkersAndFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "hook.go"), `package x
//+kubebuilder:webhook:path=/marked,mutating=true,failurePolicy=fail,sideEffects=None,groups=core;apps,resources=pods,verbs=create;update,versions=v1,name=m.x.io,admissionReviewVersions=v1,timeoutSeconds=3,reinvocationPolicy=IfNeeded,matchPolicy=exact
//+kubebuilder:webhook:path=/generated,mutating=false,failurePolicy=ignore,groups=a,resources=b,verbs=delete,versions=v1,name=no.x.io
//+kubebuilder:webhook:path=/given,mutating=false,failurePolicy=ignore,groups=a,resources=b,verbs=delete,versions=v1,name=no.x.io
//+kubebuilder:webhook:url="https://x.io/elsewhere",mutating=false,failurePolicy=fail,groups=a,resources=b,verbs="*",versions=v1,name=u.x.io
`)
	write(t, filepath.Join(root, "config", "webhook", "manifests.yaml"), `---
kind: ValidatingWebhookConfiguration
webhooks:
- name: g.x.io
  clientConfig: {service: {name: s, namespace: ns, path: /generated}}
  rules: [{apiGroups: [a], apiVersions: [v1], resources: [c], operations: [CREATE], scope: Namespaced}]
  namespaceSelector: {matchLabels: {l: v}}
  objectSelector: {matchExpressions: [{key: k, operator: Exists}]}
  matchConditions: [{name: c, expression: "request.name != 'x'"}]
- name: g2.x.io
  failurePolicy: Fail
  clientConfig: {service: {name: s, namespace: ns, path: /generated}}
  rules: [{apiGroups: [a], apiVersions: [v2], resources: [c], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {l: v}}
  objectSelector: {matchExpressions: [{key: k, operator: Exists}]}
  matchConditions: [{name: c, expression: "request.name != 'x'"}]
- name: url.x.io
  clientConfig: {url: "https://x.io/elsewhere"}
`)
	given := filepath.Join(root, "given.yaml")
	write(t, given, `kind: MutatingWebhookConfiguration
webhooks:
- name: f.x.io
  clientConfig: {service: {name: s, namespace: ns, path: /given}}
  failurePolicy: Ignore
  reinvocationPolicy: IfNeeded
  timeoutSeconds: 5
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods/status], operations: ["*"]}]
`)
	var packages []pkg
	if err := json.Unmarshal(fmt.Appendf(nil, `[{"Dir": %q, "GoFiles": ["hook.go"], "Module": {"Main": true}}]`, root), &packages); err != nil {
		t.Fatal(err)
	}
	p := &Project{Root: root, Roles: []string{given}}
	got, err := p.webhooks(packages)
	generated := abi.WebhookRule{Groups: []string{"a"}, Versions: []string{"v1"}, Resources: []string{"c"}, Operations: []abi.Operation{"CREATE"}, Scope: "Namespaced"}
	second := generated
	second.Versions, second.Scope = []string{"v2"}, ""
	want := []abi.Webhook{
		{
			Type: abi.WebhookDefault, Path: "/given", Name: "f.x.io", FailurePolicy: "Ignore", Reinvocation: "IfNeeded", Timeout: 5,
			Rules: []abi.WebhookRule{{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods/status"}, Operations: []abi.Operation{"*"}}},
		},
		{
			Type: abi.WebhookValidate, Path: "/generated", Name: "g.x.io", FailurePolicy: "Fail", Namespaces: "l=v", Objects: "k",
			Conditions: []abi.MatchCondition{{Name: "c", Expression: "request.name != 'x'"}}, Rules: []abi.WebhookRule{generated, second},
		},
		{
			Type: abi.WebhookDefault, Path: "/marked", Name: "m.x.io", FailurePolicy: "Fail", MatchPolicy: "Exact", Reinvocation: "IfNeeded", Timeout: 3,
			Rules: []abi.WebhookRule{{Groups: []string{"", "apps"}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []abi.Operation{"CREATE", "UPDATE"}}},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v\n%v", got, want, err)
	}
	if _, err := p.rules(packages); err != nil {
		t.Errorf("a file with webhooks only: %v", err)
	}
	if _, err := (Main{}).linkerFlags(found{Webhooks: got}); err != nil {
		t.Error(err)
	}
	write(t, given, strings.Repeat("---\nkind: MutatingWebhookConfiguration\nwebhooks: [{name: a, timeoutSeconds: TIME, clientConfig: {service: {path: /p}}}]\n", 2))
	if _, err := p.webhooks(nil); err == nil {
		t.Error("a timeout that is no number is no error")
	}
	write(t, given, "kind: MutatingWebhookConfiguration\nwebhooks: [{timeoutSeconds: 1, clientConfig: {service: {path: /p}}}, {timeoutSeconds: 2, clientConfig: {service: {path: /p}}}]\n")
	if _, err := p.webhooks(nil); err == nil || !strings.Contains(err.Error(), "webhooks[/p]") {
		t.Errorf("two webhooks of one path with different settings: %v", err)
	}
}
