// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// podReview is the update of a Pod of the usual size.
func podReview(b *testing.B) []byte {
	b.Helper()
	pod, err := os.ReadFile("../reflector/testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, pod); err != nil {
		b.Fatal(err)
	}
	return []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"resource":{"group":"","version":"v1","resource":"pods"},"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},` +
		`"name":"storefront","namespace":"shop","operation":"UPDATE","userInfo":{"username":"ann","groups":["system:authenticated"]},"object":` + compact.String() + `,"oldObject":` + compact.String() +
		`,"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`)
}

// native is a webhook as controller-runtime serves it: the review and its objects are decoded into Go types.
func native(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 7<<20))
	var review admissionv1.AdmissionReview
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	for _, raw := range [][]byte{review.Request.Object.Raw, review.Request.OldObject.Raw} {
		if err == nil {
			err = json.Unmarshal(raw, &corev1.Pod{})
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}, nil
	if err := json.NewEncoder(w).Encode(&review); err != nil {
		panic(err)
	}
}

// BenchmarkAdmission compares a webhook that allows everything with a native one that does the same.
func BenchmarkAdmission(b *testing.B) {
	body := podReview(b)
	for _, of := range []struct {
		name string
		http.Handler
	}{{"wasmctl", serverOf(jobs())}, {"native", http.HandlerFunc(native)}} {
		b.Run(of.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/validate?timeout=10s", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				if of.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkConversion converts a list of 500 objects of 4 KB by a backend that only changes their version.
func BenchmarkConversion(b *testing.B) {
	const n = 500
	objects := make([]string, n)
	for i := range objects {
		objects[i] = fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Job","metadata":{"name":"n%d","uid":"1"},"spec":{"text":"%s","list":[1,2,3,{"a":"b"}]}}`, i, strings.Repeat("x", 4000))
	}
	body := []byte(conversionReview("example.com/v2", objects...))
	account := &recorder{limit: 1 << 30}
	s := New(Config{})
	s.Add("jobs", "", changing(), account)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/convert", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte("Success")) {
			b.Fatalf("%d %.500s", w.Code, w.Body)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
	b.ReportMetric(float64(account.peak), "B/peak")
}
