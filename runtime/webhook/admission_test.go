// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	kjson "sigs.k8s.io/json"

	"github.com/wasmctl/wasmctl/abi"
)

// TestAdmit_TheBackendGetsTheRequest: all fields of the review arrive, objects without managedFields.
func TestAdmit_TheBackendGetsTheRequest(t *testing.T) {
	b := jobs()
	var got *abi.Admission
	b.admit = func(_ context.Context, w *abi.Webhook, a *abi.Admission) (abi.AdmissionResult, error) {
		got = a
		if w.Path != "/validate" {
			t.Errorf("webhook %s", w.Path)
		}
		return abi.AdmissionResult{}, nil
	}
	s := serverOf(b)
	plain, err := abi.AppendValue(nil, object(t, strings.Replace(job, `"managedFields":[{"manager":"m"}],`, "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	options, err := abi.AppendValue(nil, map[string]any{"kind": "UpdateOptions"})
	if err != nil {
		t.Fatal(err)
	}
	target := abi.Target{Group: "example.com", Version: "v1", Kind: "Job", Resource: "jobs"}
	want := abi.Admission{
		ID: "u1", Controller: "jobs", Webhook: "/validate", Operation: abi.OperationUpdate, Target: target, Requested: target,
		Key: abi.Key{Namespace: "b", Name: "a"}, Object: plain, Old: plain, Options: options,
		User: abi.User{Name: "ann", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
	}
	for _, c := range []struct {
		change string
		want   func(*abi.Admission)
	}{
		{`{}`, func(*abi.Admission) {}},
		{`{"dryRun":true,"subResource":"scale","requestSubResource":"other","requestKind":{"group":"g","version":"v0","kind":"J"},"requestResource":{"group":"g","version":"v0","resource":"js"}}`, func(a *abi.Admission) {
			a.DryRun, a.Target.Subresource = true, "scale"
			a.Requested = abi.Target{Group: "g", Version: "v0", Kind: "J", Resource: "js", Subresource: "other"}
		}},
		{`{"operation":"CREATE","name":"","options":null}`, func(a *abi.Admission) {
			a.Operation, a.Key.Name, a.Old, a.Options = abi.OperationCreate, "", nil, nil
		}},
		{`{"operation":"DELETE","object":null}`, func(a *abi.Admission) { a.Operation, a.Object = abi.OperationDelete, nil }},
		{`{"operation":"CONNECT","oldObject":null,"userInfo":{}}`, func(a *abi.Admission) {
			a.Operation, a.Old, a.User = abi.OperationConnect, nil, abi.User{Extra: map[string][]string{}}
		}},
	} {
		admitted(t, s, "/validate", reviewOf(t, c.change))
		expected := want
		if c.want(&expected); !reflect.DeepEqual(*got, expected) {
			t.Errorf("%s: %+v, want %+v", c.change, *got, expected)
		}
	}
}

// TestAdmit_TheAPIServerAcceptsTheAnswer: for each kind of result and both versions of a review, the API server's own check accepts the
// answer and reads what the backend decided.
func TestAdmit_TheAPIServerAcceptsTheAnswer(t *testing.T) {
	b := jobs()
	s := serverOf(b)
	changed, err := abi.AppendValue(nil, object(t, strings.Replace(job, `"n":1`, `"n":2`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	same, err := abi.AppendValue(nil, object(t, job))
	if err != nil {
		t.Fatal(err)
	}
	const module = `{"wasmctl-controller":"jobs","wasmctl-module":"sha256:1"}`
	for name, c := range map[string]struct {
		path string
		res  abi.AdmissionResult
		want string // the JSON of the response without its uid
	}{
		"allowed":   {"/validate", abi.AdmissionResult{}, `{"allowed":true,"auditAnnotations":` + module + `}`},
		"unchanged": {"/default", abi.AdmissionResult{Object: same}, `{"allowed":true,"auditAnnotations":` + module + `}`},
		"changed": {
			"/default",
			abi.AdmissionResult{Object: changed, Warnings: []string{"old\nfield", ""}},
			`{"allowed":true,"patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL24iLCJ2YWx1ZSI6Mn1d","patchType":"JSONPatch","auditAnnotations":` + module + `,"warnings":["old\\nfield"]}`,
		},
		"denied": {
			"/validate",
			abi.AdmissionResult{Denied: &abi.Denial{Message: "no"}},
			`{"allowed":false,"status":{"metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403},"auditAnnotations":` + module + `}`,
		},
		"denied with causes": {
			"/default",
			abi.AdmissionResult{Denied: &abi.Denial{Code: 422, Message: "bad", Causes: []abi.Cause{{Type: "FieldValueInvalid", Field: "spec.n", Message: "is 1"}}}, Audit: map[string]string{"example.com/a b": "x", AuditModule: "forged"}},
			`{"allowed":false,"status":{"metadata":{},"status":"Failure","message":"bad","reason":"Invalid","details":{"name":"a","group":"example.com","kind":"Job","causes":[{"reason":"FieldValueInvalid","message":"is 1","field":"spec.n"}]},"code":422},` +
				`"auditAnnotations":{"example.com_a_b":"x","wasmctl-controller":"jobs","wasmctl-module":"sha256:1"}}`,
		},
		"denied with a reason": {
			"/validate",
			abi.AdmissionResult{Denied: &abi.Denial{Code: 409, Reason: "Taken"}},
			`{"allowed":false,"status":{"metadata":{},"status":"Failure","reason":"Taken","code":409},"auditAnnotations":` + module + `}`,
		},
	} {
		b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) { return c.res, nil }
		for version, review := range map[string]k8sruntime.Object{"v1": &admissionv1.AdmissionReview{}, "v1beta1": &admissionv1beta1.AdmissionReview{}} {
			w := post(s, c.path, strings.Replace(reviewOf(t), "k8s.io/v1", "k8s.io/"+version, 1))
			if err := json.Unmarshal(w.Body.Bytes(), review); err != nil || w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"apiVersion":"admission.k8s.io/`+version+`"`) {
				t.Fatalf("%s: %d %s: %v", name, w.Code, w.Body, err)
			}
			got, err := webhookrequest.VerifyAdmissionResponse("u1", c.path == "/default", review)
			if err != nil {
				t.Errorf("%s, %s: %v", name, version, err)
				continue
			}
			var want admissionv1.AdmissionResponse
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if got.Allowed != want.Allowed || !reflect.DeepEqual(got.Result, want.Result) || string(got.Patch) != string(want.Patch) || !slices.Equal(got.Warnings, want.Warnings) || !reflect.DeepEqual(got.AuditAnnotations, want.AuditAnnotations) {
				t.Errorf("%s, %s: %+v %s, want %s", name, version, got, w.Body, c.want)
			}
		}
	}
	b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
		return abi.AdmissionResult{Object: changed}, nil
	}
	refused(t, post(s, "/validate", reviewOf(t)), 500, "must not change")
	refused(t, post(s, "/default", reviewOf(t, `{"operation":"DELETE"}`)), 500, "must not change")
	b.admit = func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
		return abi.AdmissionResult{Object: []byte{0x90}}, nil
	}
	refused(t, post(s, "/default", reviewOf(t)), 500, "cannot be read")
}

// TestWarnings_AreBounded as the API server does it.
func TestWarnings_AreBounded(t *testing.T) {
	long := strings.Repeat("é", 300)
	if got := warnings([]string{long, "a\x1b"}); !slices.Equal(got, []string{long, `a\u001b`}) {
		t.Errorf("%q", got)
	}
	got := warnings(slices.Repeat([]string{long}, 50))
	if len(got) != 16 || got[15] != long[:512] {
		t.Errorf("%d: %q", len(got), got)
	}
}

// TestSelects_IsTheAPIServersMatch compares random rules and requests with the API server's own implementation.
func TestSelects_IsTheAPIServersMatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	some := func(of ...string) []string { return []string{one(of...), one(of...)} }
	selected := 0
	for range 20_000 {
		rule := abi.WebhookRule{
			Groups: some("", "apps", "*"), Versions: some("v1", "v2", "*"), Resources: some("pods", "namespaces", "*", "*/*", "pods/*", "pods/scale", "*/scale"),
			Operations: []abi.Operation{abi.Operation(one("CREATE", "DELETE", "*"))}, Scope: one("", "*", "Cluster", "Namespaced"),
		}
		a := &abi.Admission{
			Operation: abi.Operation(one("CREATE", "DELETE")), Key: abi.Key{Namespace: one("", "a"), Name: "n"},
			Target: abi.Target{Group: one("", "apps"), Version: one("v1", "v2"), Resource: one("pods", "namespaces", "jobs"), Subresource: one("", "scale", "status")},
		}
		like := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: rule.Groups, APIVersions: rule.Versions, Resources: rule.Resources}}
		if rule.Scope != "" {
			like.Scope = (*admissionregistrationv1.ScopeType)(&rule.Scope)
		}
		for _, o := range rule.Operations {
			like.Operations = append(like.Operations, admissionregistrationv1.OperationType(o))
		}
		attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, a.Key.Namespace, a.Key.Name,
			schema.GroupVersionResource{Group: a.Target.Group, Version: a.Target.Version, Resource: a.Target.Resource}, a.Target.Subresource, admission.Operation(a.Operation), nil, false, nil)
		want := (&rules.Matcher{Rule: like, Attr: attributes}).Matches()
		if got := (&abi.Webhook{Rules: []abi.WebhookRule{rule}}).Selects(a); got != want {
			t.Fatalf("%+v selects %+v: %t, want %t", rule, a, got, want)
		}
		if want {
			selected++
		}
	}
	if selected < 1000 {
		t.Errorf("only %d requests were selected", selected)
	}
}

// FuzzAdmission: for any body, the answer is a refusal, or a review with the uid of the request that the API server accepts.
func FuzzAdmission(f *testing.F) {
	for _, change := range []string{`{}`, `{"operation":"DELETE"}`, `{"uid":1}`, `{"object":{"apiVersion":"example.com/v1","kind":"Job","metadata":{"managedFields":1,"name":2}}}`, `{"userInfo":{"extra":{"a":["b"]}}}`} {
		f.Add([]byte(reviewOf(f, change)))
	}
	b := jobs()
	b.admit = func(_ context.Context, _ *abi.Webhook, a *abi.Admission) (abi.AdmissionResult, error) {
		head, split := abi.AppendAdmissionHead(nil, a)
		message := slices.Concat(head[:split], a.Old, head[split:], a.Object)
		if err := abi.Check(message); err != nil {
			return abi.AdmissionResult{}, err
		}
		return abi.AdmissionResult{Object: a.Old, Base: a.Object}, nil
	}
	s := serverOf(b)
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(s, "/default", string(body))
		if strings.Contains(w.Body.String(), "BUG") {
			t.Fatalf("%s: %s", body, w.Body)
		}
		if w.Code != http.StatusOK {
			return
		}
		var review admissionv1.AdmissionReview
		var request struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &request); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || string(review.Response.UID) != request.Request.UID {
			t.Fatalf("%s: %s: %v", body, w.Body, err)
		}
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		if _, err := webhookrequest.VerifyAdmissionResponse(review.Response.UID, true, &review); err != nil {
			t.Fatalf("%s: %s: %v", body, w.Body, err)
		}
	})
}

// FuzzConversion: for any body, the answer is a refusal, or a review with as many objects as the request if it succeeds.
func FuzzConversion(f *testing.F) {
	f.Add([]byte(conversionReview("example.com/v2", job, job)))
	f.Add([]byte(conversionReview("example.com/v1", job)))
	f.Add([]byte(conversionReview("example.com/v2", strings.Repeat(job+",", 20)+job)))
	f.Add([]byte(conversionReview("example.com/v2", `{"apiVersion":[],"kind":"Job","metadata":{"labels":1}}`)))
	s := serverOf(jobs())
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(s, "/convert", string(body))
		if strings.Contains(w.Body.String(), "BUG") {
			t.Fatalf("%s: %s", body, w.Body)
		}
		if w.Code != http.StatusOK {
			return
		}
		type review struct {
			Request struct {
				UID     string            `json:"uid"`
				Objects []json.RawMessage `json:"objects"`
			} `json:"request"`
			Response struct {
				UID              string
				ConvertedObjects []json.RawMessage
				Result           metav1.Status
			}
		}
		var asked, got review
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &asked); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response.UID != asked.Request.UID ||
			got.Response.Result.Status == metav1.StatusSuccess && len(got.Response.ConvertedObjects) != len(asked.Request.Objects) {
			t.Fatalf("%s: %s: %v", body, w.Body, err)
		}
	})
}
