// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"strings"
	"testing"
)

func TestWebhook_Selects(t *testing.T) {
	for _, tc := range []struct {
		resources, target string
		want              bool
	}{
		{"pods", "pods", true},
		{"pods", "pods/status", false},
		{"pods/status", "pods/status", true},
		{"pods/status", "pods", false},
		{"*", "pods", true},
		{"*", "pods/status", false},
		{"pods/*", "pods", true},
		{"pods/*", "pods/status", true},
		{"*/status", "pods/status", true},
		{"*/status", "pods", false},
		{"*/*", "pods", true},
		{"*/*", "pods/status", true},
		{"jobs pods", "pods", true},
		{"jobs", "pods", false},
	} {
		w := Webhook{Rules: []WebhookRule{{Groups: []string{"g"}, Versions: []string{"*"}, Resources: strings.Fields(tc.resources), Operations: []Operation{OperationUpdate}}}}
		resource, sub, _ := strings.Cut(tc.target, "/")
		a := Admission{Operation: OperationUpdate, Target: Target{Group: "g", Version: "v1", Resource: resource, Subresource: sub}}
		if got := w.Selects(&a); got != tc.want {
			t.Errorf("%s of %s: %v", tc.target, tc.resources, got)
		}
		w.Rules[0].Scope = "Namespaced"
		if w.Selects(&a) {
			t.Errorf("%s of %s: without a namespace", tc.target, tc.resources)
		}
		create, other := a, a
		create.Operation, other.Target.Group, w.Rules[0].Scope = OperationCreate, "other", ""
		if w.Selects(&create) || w.Selects(&other) {
			t.Errorf("%s of %s: another operation or group", tc.target, tc.resources)
		}
	}
}

func TestManifest_ChecksWebhooks(t *testing.T) {
	rule := WebhookRule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []Operation{OperationCreate}}
	for want, m := range map[string]Manifest{
		"":                                   {Webhooks: []Webhook{{Type: WebhookValidate, Path: "/validate--v1-pod", Rules: []WebhookRule{rule}, Timeout: 30}}, Conversions: []Conversions{{Group: "g", Kind: "K"}}},
		`path: "pods" is not a path`:         {Webhooks: []Webhook{{Type: WebhookValidate, Path: "pods"}}},
		`path: "/a" is that of another`:      {Webhooks: []Webhook{{Type: WebhookValidate, Path: "/a"}, {Type: WebhookDefault, Path: "/a"}}},
		`type: "mutate" is none of`:          {Webhooks: []Webhook{{Type: "mutate", Path: "/a"}}},
		"timeoutSeconds: 31 is not between":  {Webhooks: []Webhook{{Type: WebhookDefault, Path: "/a", Timeout: 31}}},
		"apiGroups, apiVersions, resources":  {Webhooks: []Webhook{{Type: WebhookDefault, Path: "/a", Rules: []WebhookRule{{}}}}},
		`failurePolicy: "fail" is none of`:   {Webhooks: []Webhook{{Type: WebhookDefault, Path: "/a", FailurePolicy: "fail"}}},
		"name and expression are required":   {Webhooks: []Webhook{{Type: WebhookDefault, Path: "/a", Conditions: []MatchCondition{{Name: "a"}}}}},
		"conversions[1]: K is there twice":   {Conversions: []Conversions{{Group: "g", Kind: "K"}, {Group: "g", Kind: "K"}}},
		"conversions[0]: group and kind are": {Conversions: []Conversions{{Kind: "K"}}},
	} {
		err := m.checkWebhooks()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDenial_TextSaysEachCauseOnce, also if its message already has the causes, as those of the SDKs have.
func TestDenial_TextSaysEachCauseOnce(t *testing.T) {
	port, host := Cause{Field: "spec.port", Message: "is 80"}, Cause{Message: "no host"}
	for want, d := range map[string]Denial{
		"spec.port: is 80":            {Message: "spec.port: is 80", Causes: []Cause{port}},
		"[spec.port: is 80, no host]": {Message: "[spec.port: is 80, no host]", Causes: []Cause{port, host}},
		"wrong; spec.port: is 80":     {Message: "wrong", Causes: []Cause{port}},
		"spec.port: is 80; no host":   {Causes: []Cause{port, host}},
		"Invalid":                     {Reason: "Invalid"},
	} {
		if got := d.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
