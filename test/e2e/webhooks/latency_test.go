// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestWebhooks_Latency logs how long dry runs take: without a webhook, with an empty one of Go's own server, and with those of a module. It
// does not judge the durations, which depend on the machine.
func TestWebhooks_Latency(t *testing.T) {
	if !e2e.All() {
		t.Skip("SKIPPED: it only measures: WASMCTL_TESTS=all go test -v -run Latency ./test/e2e/webhooks")
	}
	w := newWorld(t)
	w.measure(t, "no webhook")
	remove := w.addEmpty(t)
	w.measure(t, "an empty webhook")
	remove()
	e2e.Run(t, e2e.Example(t, website), "--grant-manifest", "--webhook-address", "127.0.0.1:0", "--socket", "none", "--kubeconfig", w.kubeconfig)
	enginetest.Until(t, "a wrong object is denied", func() bool {
		_, err := w.try(t.Context(), true)
		return isDenied(err)
	})
	w.measure(t, "validate and default of a module")
}

// measure logs the durations of requests, one after the other.
func (w *world) measure(t *testing.T, what string) {
	t.Helper()
	took := make([]time.Duration, 1000)
	for i := range took {
		began := time.Now()
		if _, err := w.try(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	t.Logf("%s: median %v, p99 %v", what, took[len(took)/2], took[len(took)*99/100])
}

// addEmpty registers a webhook that allows every Website, until remove is called.
func (w *world) addEmpty(t *testing.T) (remove func()) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}, nil
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(&review) // the API server reports it
	}))
	rc, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	configurations := kubernetes.NewForConfigOrDie(rc).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	none := admissionregistrationv1.SideEffectClassNone
	_, err = configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "empty"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "empty.wasmctl.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"examples.wasmctl.dev"}, APIVersions: []string{"v2"}, Resources: []string{"websites"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := configurations.Delete(context.WithoutCancel(t.Context()), "empty", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
