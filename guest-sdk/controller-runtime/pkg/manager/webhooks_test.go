// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_023

package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	ctrl "sigs.k8s.io/controller-runtime"
	apiconversion "sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// labeler sets a label.
type labeler struct{}

func (labeler) Default(_ context.Context, s *corev1.Secret) error {
	s.Labels = map[string]string{"set": "by-" + s.Name}
	return nil
}

// TestWebhooks_BelongToTheControllerOfTheirKind: a webhook and a conversion of
// another kind belong to the first controller. A path without settings has no
// rules.
func TestWebhooks_BelongToTheControllerOfTheirKind(t *testing.T) {
	program.Hooks = []program.Hook{{Type: "default", Webhook: wasmctl.Webhook{
		Path: "/mutate--v1-secret", Name: "secrets.example.com", FailurePolicy: "Fail",
		Rules: []wasmctl.WebhookRule{{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"secrets"}, Operations: []wasmctl.Operation{"CREATE"}}},
	}}}
	t.Cleanup(func() { program.Hooks = nil })
	m := newManager(t, ctrl.Options{})
	must(t, ctrl.NewControllerManagedBy(m).Named("first").For(&corev1.ConfigMap{}).Complete(nothing))
	must(t, ctrl.NewControllerManagedBy(m).Named("second").For(&corev1.Secret{}).Complete(nothing))
	must(t, ctrl.NewWebhookManagedBy(m, &corev1.Secret{}).WithDefaulter(labeler{}).Complete())
	must(t, ctrl.NewWebhookManagedBy(m, &appsv1.Deployment{}).WithConverter(func(*runtime.Scheme) (conversion.Converter, error) {
		return conversion.NewHubSpokeConverter[*appsv1.Deployment](&appsv1.Deployment{})(m.GetScheme())
	}).Complete())
	m.GetWebhookServer().Register("/pods", &webhook.Admission{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Denied("no")
	})})
	one, err := manager.Reconciler(m, "first")
	must(t, err)
	two, err := manager.Reconciler(m, "second")
	must(t, err)
	first, second := one.Manifest, two.Manifest
	if len(first.Webhooks) != 1 || first.Webhooks[0].Path != "/pods" || first.Webhooks[0].Validate == nil || first.Webhooks[0].Rules == nil || len(first.Webhooks[0].Rules) > 0 {
		t.Errorf("webhooks of the first controller: %+v", first.Webhooks)
	}
	if len(first.Conversions) != 1 || first.Conversions[0].Kind != "Deployment" || !reflect.DeepEqual(first.Conversions[0].Versions, []string{"v1"}) {
		t.Errorf("conversions of the first controller: %+v", first.Conversions)
	}
	if len(second.Webhooks) != 1 || len(second.Conversions) > 0 {
		t.Fatalf("webhooks of the second controller: %+v", second)
	}
	w := second.Webhooks[0]
	if w.Path != "/mutate--v1-secret" || w.Name != "secrets.example.com" || w.FailurePolicy != "Fail" || w.Rules[0].Resources[0] != "secrets" || w.Validate != nil {
		t.Errorf("%+v", w)
	}
	v := w.Default(&wasmctl.Context{}, wasmctl.Admission{Operation: wasmctl.OperationCreate, Object: object(t, map[string]any{"metadata": map[string]any{"name": "a"}, "future": 1})})
	text, err := json.Marshal(v.Object)
	if want := `{"future":1,"metadata":{"creationTimestamp":null,"labels":{"set":"by-a"},"name":"a"}}`; err != nil || !sameJSON(t, text, want) || v.Base != nil {
		t.Errorf("%s, %v, %v", text, err, v.Err)
	}
}

func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b map[string]any
	must(t, json.Unmarshal(got, &a))
	must(t, json.Unmarshal([]byte(want), &b))
	if meta, ok := b["metadata"].(map[string]any); ok && !reflect.DeepEqual(a, b) {
		delete(meta, "creationTimestamp") // before version 0.34 of apimachinery
	}
	return reflect.DeepEqual(a, b)
}

// TestWebhooks_HandlersSeeTheRequest, and their answer becomes the verdict.
func TestWebhooks_HandlersSeeTheRequest(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(nothing))
	var seen admission.Request
	var answer admission.Response
	m.GetWebhookServer().Register("/mutate", &webhook.Admission{Handler: admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		seen = req
		return answer
	})})
	judge := declared(t, m).Manifest.Webhooks[0].Default
	at := wasmctl.AdmissionTarget{Group: "apps", Version: "v1", Kind: "Scale", Resource: "deployments", Subresource: "scale"}
	from := at
	from.Version = "v1beta1"
	a := wasmctl.Admission{
		ID: "u", Webhook: "/mutate", Operation: wasmctl.OperationUpdate, Target: at, Requested: from, Namespace: "n", Name: "a", DryRun: true,
		Object: object(t, map[string]any{"spec": map[string]any{"replicas": 2}}), Old: object(t, map[string]any{"spec": map[string]any{}}), Options: object(t, map[string]any{"fieldManager": "me"}),
		User: wasmctl.User{Name: "bob", UID: "b", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
	}
	answer = admission.Allowed("fine").WithWarnings("w")
	answer.AuditAnnotations = map[string]string{"k": "v"}
	if v := judge(&wasmctl.Context{}, a); v.Denied != nil || v.Object != nil || !reflect.DeepEqual(v.Warnings, []string{"w"}) || v.Audit["k"] != "v" {
		t.Errorf("%+v", v)
	}
	if seen.UID != "u" || seen.Kind.Kind != "Scale" || seen.Kind.Version != "v1" || seen.Resource.Resource != "deployments" || seen.SubResource != "scale" ||
		seen.RequestKind.Version != "v1beta1" || seen.RequestResource.Version != "v1beta1" || seen.RequestSubResource != "scale" || seen.Namespace != "n" || seen.Name != "a" ||
		seen.Operation != "UPDATE" || !*seen.DryRun || seen.UserInfo.Username != "bob" || seen.UserInfo.Extra["k"][0] != "v" ||
		string(seen.Object.Raw) != `{"spec":{"replicas":2}}` || string(seen.OldObject.Raw) != `{"spec":{}}` || string(seen.Options.Raw) != `{"fieldManager":"me"}` {
		t.Errorf("%+v", seen)
	}
	answer = admission.PatchResponseFromRaw([]byte(`{"spec":{}}`), []byte(`{"spec":{"paused":true}}`))
	v := judge(&wasmctl.Context{}, a)
	if text, err := json.Marshal(v.Object); err != nil || string(text) != `{"spec":{"paused":true,"replicas":2}}` {
		t.Errorf("patched: %s, %v", text, v.Err)
	}
	answer = admission.Patched("", admission.PatchResponseFromRaw([]byte(`{"x":1}`), []byte(`{}`)).Patches...)
	if v := judge(&wasmctl.Context{}, a); v.Err == nil {
		t.Error("a patch that does not apply is no error")
	}
	for _, c := range []struct {
		answer admission.Response
		want   wasmctl.Denial
	}{
		{admission.Denied("no"), wasmctl.Denial{Code: 403, Reason: "Forbidden", Message: "no"}},
		{admission.Errored(500, errors.New("broken")), wasmctl.Denial{Code: 500, Message: "broken"}},
		{admission.Response{}, wasmctl.Denial{Code: 400}},
	} {
		answer = c.answer
		if v := judge(&wasmctl.Context{}, a); v.Denied == nil || !reflect.DeepEqual(*v.Denied, c.want) {
			t.Errorf("%+v, want %+v", v.Denied, c.want)
		}
	}
}

// app has two versions: the first one is the hub.
type (
	app  struct{ corev1.ConfigMap }
	app2 struct{ corev1.Secret }
)

func (*app) Hub()                             {}
func (a *app) DeepCopyObject() runtime.Object { return &app{*a.DeepCopy()} }

func (a *app2) DeepCopyObject() runtime.Object { return &app2{*a.DeepCopy()} }
func (a *app2) ConvertTo(hub apiconversion.Hub) error {
	to := hub.(*app) //nolint:forcetypeassert // the only hub
	to.ObjectMeta, to.Data = a.ObjectMeta, a.StringData
	return nil
}

func (a *app2) ConvertFrom(hub apiconversion.Hub) error {
	from := hub.(*app) //nolint:forcetypeassert // the only hub
	a.ObjectMeta, a.StringData = from.ObjectMeta, from.Data
	return nil
}

// TestWebhooks_ConvertBetweenTheVersionsOfTheScheme, and an unknown version is
// an error.
func TestWebhooks_ConvertBetweenTheVersionsOfTheScheme(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	m.GetScheme().AddKnownTypeWithName(gv.WithKind("App"), &app{})
	m.GetScheme().AddKnownTypeWithName(schema.GroupVersion{Group: gv.Group, Version: "v2"}.WithKind("App"), &app2{})
	metav1.AddToGroupVersion(m.GetScheme(), gv)
	must(t, ctrl.NewControllerManagedBy(m).For(&app{}).Complete(nothing))
	must(t, ctrl.NewWebhookManagedBy(m, &app{}).Complete())
	c := declared(t, m).Manifest.Conversions
	if len(c) != 1 || c[0].Group != gv.Group || !reflect.DeepEqual(c[0].Versions, []string{"v1", "v2"}) {
		t.Fatalf("%+v", c)
	}
	old := object(t, map[string]any{"apiVersion": "example.com/v1", "kind": "App", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}})
	got, err := c[0].Convert(&wasmctl.Context{}, old, "example.com/v2")
	now, ok := got.(*app2)
	if err != nil || !ok || now.Name != "a" || now.StringData["k"] != "v" || now.APIVersion != "example.com/v2" || now.Kind != "App" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c[0].Convert(&wasmctl.Context{}, old, "example.com/v3"); err == nil {
		t.Error("an unknown version is no error")
	}
}
