// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// backendOf is a controller in Go.
type backendOf struct {
	routes  *Routes
	admit   func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error)
	convert func(context.Context, *abi.Conversion) ([][]byte, error)
}

func (b *backendOf) Routes() *Routes { return b.routes }

func (b *backendOf) Admit(ctx context.Context, w *abi.Webhook, a *abi.Admission) (abi.AdmissionResult, error) {
	return b.admit(ctx, w, a)
}

func (b *backendOf) Convert(ctx context.Context, c *abi.Conversion) ([][]byte, error) {
	return b.convert(ctx, c)
}

// allRules select every request.
var allRules = []abi.WebhookRule{{Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*/*"}, Operations: []abi.Operation{"*"}}}

// jobs has a validating and a defaulting webhook, and converts the kind Job of the group example.com.
func jobs() *backendOf {
	return &backendOf{
		routes: &Routes{
			Webhooks: []abi.Webhook{
				{Type: abi.WebhookValidate, Path: "/validate", Rules: allRules},
				{Type: abi.WebhookDefault, Path: "/default", Rules: allRules},
				{Type: abi.WebhookValidate, Path: "/without-rules"},
			},
			Conversions: []abi.Conversions{{Group: "example.com", Kind: "Job", Versions: []string{"v1", "v2"}}},
			Digest:      "sha256:1",
		},
		admit: func(context.Context, *abi.Webhook, *abi.Admission) (abi.AdmissionResult, error) {
			return abi.AdmissionResult{}, nil
		},
		convert: func(_ context.Context, c *abi.Conversion) ([][]byte, error) { return setVersion(c) },
	}
}

// setVersion is a conversion that changes nothing else.
func setVersion(c *abi.Conversion) (converted [][]byte, err error) {
	for _, b := range c.Objects {
		o, err := abi.DecodeObject(b)
		if err != nil {
			return nil, err
		}
		o["apiVersion"] = c.To
		if b, err = abi.AppendValue(nil, o); err != nil {
			return nil, err
		}
		converted = append(converted, b)
	}
	return converted, nil
}

func serverOf(b Backend) *Server {
	s := New(Config{})
	s.Add("jobs", "", b)
	return s
}

// post returns the answer to a review.
func post(s *Server, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const job = `{"apiVersion":"example.com/v1","kind":"Job","metadata":{"name":"a","namespace":"b","managedFields":[{"manager":"m"}],"uid":"1"},"spec":{"n":1}}`

// reviewOf returns an AdmissionReview with the given parts of a request, which replace those of an update of a Job.
func reviewOf(t testing.TB, changes ...string) string {
	t.Helper()
	request := map[string]json.RawMessage{}
	for _, js := range append([]string{`{"uid":"u1","operation":"UPDATE","kind":{"group":"example.com","version":"v1","kind":"Job"},
		"resource":{"group":"example.com","version":"v1","resource":"jobs"},"namespace":"b","name":"a",
		"userInfo":{"username":"ann","uid":"7","groups":["g"],"extra":{"k":["v"]}},"object":` + job + `,"oldObject":` + job + `,"options":{"kind":"UpdateOptions"}}`}, changes...) {
		if err := json.Unmarshal([]byte(js), &request); err != nil {
			t.Fatalf("%s: %v", js, err)
		}
	}
	b, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// admitted returns the response to a review that is answered.
func admitted(t *testing.T, s *Server, path, body string) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(s, path, body)
	var review admissionv1.AdmissionReview
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&review); err != nil || w.Code != http.StatusOK || review.Response == nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return review.Response
}

// refused checks the status and a part of the text of a refusal.
func refused(t *testing.T, w *httptest.ResponseRecorder, code int, part string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != code || int(status.Code) != code || status.Kind != "Status" || !strings.Contains(status.Message, part) {
		t.Errorf("%d %s, want %d with %q", w.Code, w.Body, code, part)
	}
}
