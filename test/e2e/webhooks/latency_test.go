// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestWebhooks_Latency logs how long dry runs take, in turn without a webhook, with empty ones of Go's own server, and with those of a
// module; first in peace, and then while the module is swapped 100 times. Two webhooks are called for a request: one that changes objects and
// one that validates. WASMCTL_RATE requests of each kind are sent a second, 250 by default. The test does not judge the durations, which
// depend on the machine.
func TestWebhooks_Latency(t *testing.T) {
	if !e2e.All() {
		t.Skip("SKIPPED: it only measures: WASMCTL_TESTS=all go test -v -run Latency ./test/e2e/webhooks")
	}
	rate, err := strconv.Atoi(os.Getenv("WASMCTL_RATE"))
	if err != nil {
		rate = 250
	}
	w, socket, files := newWorld(t), e2e.NewSocket(t), twoModules(t)
	native, ours := *w, *w
	native.ns, ours.ns = devclustertest.Namespace(t, w.cluster), devclustertest.Namespace(t, w.cluster)
	native.addEmpty(t)
	e2e.Run(t, files[0], "--name", website, "--grant-manifest", "-n", ours.ns, "--webhook-address", "127.0.0.1:0", "--socket", socket, "--probation", "0", "--kubeconfig", w.kubeconfig)
	enginetest.Until(t, "a wrong object is denied", func() bool {
		_, err := ours.try(t.Context(), true)
		return isDenied(err)
	})
	kinds := []load{{what: "no webhook", world: w}, {what: "empty webhooks", world: &native}, {what: "webhooks of a module", world: &ours}}
	measure(t, "in peace", rate, kinds, func() { e2e.Pause(t.Context(), 20*time.Second) })
	measure(t, "100 swaps", rate, kinds, func() {
		for i := range 100 {
			e2e.Steer(t, "swap", socket, website, files[(i+1)%2])
		}
	})
}

// load is one kind of request that is measured.
type load struct {
	what  string
	world *world

	mu   sync.Mutex
	took []time.Duration // guarded by mu
}

// measure sends requests of all kinds in turn while do runs, and logs their durations.
func measure(t *testing.T, when string, rate int, kinds []load, do func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var requests sync.WaitGroup
	requests.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate*len(kinds)))
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			requests.Go(func() { kinds[i%len(kinds)].request(t) })
			<-tick.C
		}
	})
	began := time.Now()
	do()
	stop()
	lasted := time.Since(began)
	requests.Wait()
	for i := range kinds {
		k := &kinds[i]
		slices.Sort(k.took)
		n := len(k.took)
		t.Logf("%s, %s: %d requests, %.0f a second, median %v, p99 %v", when, k.what, n, float64(n)/lasted.Seconds(), k.took[n/2], k.took[n*99/100])
		k.took = nil
	}
}

// request sends one request. Only a webhook that fails is an error: the API server sheds requests of its own.
func (l *load) request(t *testing.T) {
	began := time.Now()
	_, err := l.world.try(t.Context(), false)
	took := time.Since(began)
	if err != nil && strings.Contains(err.Error(), "webhook") {
		t.Errorf("%s: %v", l.what, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
}

// addEmpty registers webhooks of both types that allow every Website of the namespace.
func (w *world) addEmpty(t *testing.T) {
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
	t.Cleanup(server.Close)
	for kind, resource := range map[string]string{"ValidatingWebhookConfiguration": "validatingwebhookconfigurations", "MutatingWebhookConfiguration": "mutatingwebhookconfigurations"} {
		hook := map[string]any{
			"name": "empty.wasmctl.dev", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig":      map[string]any{"url": server.URL, "caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.ns}},
			"rules": []any{map[string]any{
				"operations": []any{"CREATE"}, "apiGroups": []any{"examples.wasmctl.dev"}, "apiVersions": []any{"v2"}, "resources": []any{"websites"},
			}},
		}
		configuration := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "empty"}, "webhooks": []any{hook},
		}}
		configurations := w.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
		if _, err := configurations.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
