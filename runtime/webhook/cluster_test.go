// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// selfSigned returns a certificate for this host, and its PEM.
func selfSigned(t *testing.T) (*tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// check returns an error unless the server completes a TLS handshake at its own address.
func check(t *testing.T, s *Server) error {
	t.Helper()
	addr := s.Addr()
	if addr == nil {
		return errors.New("does not listen yet")
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Minute}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // its certificate is for other names
	conn, err := dialer.DialContext(context.Background(), "tcp", addr.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// run runs a server at a free port until the test ends, and returns its URL and the CA for it.
func run(t *testing.T, s *Server) (url string, ca []byte) {
	t.Helper()
	s.cfg.Address = "127.0.0.1:0"
	certificate, ca := selfSigned(t)
	s.cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	if err := check(t, s); err == nil || s.Addr() != nil {
		t.Errorf("before it listens: %v, %v", s.Addr(), err)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if check(t, s) == nil {
			t.Error("it answers after its end")
		}
	})
	if err := check(t, s); err != nil {
		t.Fatal(err)
	}
	return "https://" + s.Addr().String(), ca
}

// widgets are a kind with two versions, webhooks and conversions of the test.
type widgets struct {
	*backendOf

	v1, v2 dynamic.ResourceInterface
	broken atomic.Bool // nothing can be converted

	mu       sync.Mutex
	last     *abi.Admission // that was validated; guarded by mu
	warnings []string       // that the client was shown; guarded by mu
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *widgets) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

func (w *widgets) validated() *abi.Admission {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// judge denies, warns, fails and defaults by the text in spec.do.
func (w *widgets) judge(_ context.Context, hook *abi.Webhook, a *abi.Admission) (res abi.AdmissionResult, err error) {
	b := a.Object
	if a.Operation == abi.OperationDelete {
		b = a.Old
	}
	o, err := abi.DecodeObject(b)
	if err != nil {
		return res, err
	}
	if o["metadata"].(map[string]any)["managedFields"] != nil {
		return res, errors.New("managedFields reached the backend")
	}
	spec, _ := o["spec"].(map[string]any)
	if hook.Type == abi.WebhookDefault {
		// As a type that knows only one field reads and writes it.
		known := func(size any) ([]byte, error) {
			return abi.AppendValue(nil, map[string]any{"metadata": map[string]any{"name": "x", "creationTimestamp": nil}, "spec": map[string]any{"size": size}, "status": map[string]any{}})
		}
		if res.Base, err = known(spec["size"]); err == nil && spec["size"] == nil {
			res.Object, err = known(int64(3))
		}
		if res.Object == nil {
			res.Base = nil
		}
		return res, err
	}
	w.mu.Lock()
	w.last = a
	w.mu.Unlock()
	switch do, _ := spec["do"].(string); {
	case do == "deny", do == "keep" && a.Operation == abi.OperationDelete:
		res.Denied = &abi.Denial{Code: 422, Reason: "Invalid", Message: "not this", Causes: []abi.Cause{{Type: "FieldValueInvalid", Field: "spec.do", Message: "is deny"}}}
	case do == "warn":
		res.Warnings = []string{"spec.do: is old"}
	case do == "fail":
		err = errors.New("guest[validate]: trapped at main.go:7")
	}
	return res, err
}

func newWidgets(t *testing.T) *widgets {
	t.Helper()
	cluster := devclustertest.Shared(t)
	namespace := devclustertest.Namespace(t, cluster)
	group := namespace + ".webhook.test"
	rule := []abi.WebhookRule{{Groups: []string{group}, Versions: []string{"*"}, Resources: []string{"widgets"}, Operations: []abi.Operation{"CREATE", "UPDATE", "DELETE"}}}
	w := &widgets{backendOf: &backendOf{routes: &Routes{
		Webhooks:    []abi.Webhook{{Type: abi.WebhookValidate, Path: "/v", Rules: rule}, {Type: abi.WebhookDefault, Path: "/d", Rules: rule}},
		Conversions: []abi.Conversions{{Group: group, Kind: "Widget"}}, Digest: "sha256:1",
	}}}
	w.admit, w.convert = w.judge, func(_ context.Context, c *abi.Conversion) ([][]byte, error) {
		if w.broken.Load() {
			return nil, errors.New("cannot convert it")
		}
		return setVersion(c)
	}
	s := New(Config{})
	s.Add("widgets", "/ns/widgets", w)
	url, ca := run(t, s)
	manifest := strings.NewReplacer("GROUP", group, "URL", url+"/ns/widgets", "CA", base64.StdEncoding.EncodeToString(ca)).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "URL/convert", caBundle: CA}}}
  versions:
  - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: *any}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: GROUP}
webhooks:
- name: v.webhook.test
  clientConfig: {url: "URL/v", caBundle: CA}
  rules: [{apiGroups: [GROUP], apiVersions: [v1], resources: [widgets], operations: [CREATE, UPDATE, DELETE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: GROUP}
webhooks:
- name: d.webhook.test
  clientConfig: {url: "URL/d", caBundle: CA}
  rules: [{apiGroups: [GROUP], apiVersions: [v1], resources: [widgets], operations: [CREATE, UPDATE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`)
	config := rest.CopyConfig(cluster.RESTConfig())
	config.WarningHandler, config.QPS = w, -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	of := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: "widgets"}
	}
	w.v1, w.v2 = client.Resource(of("v1")).Namespace(namespace), client.Resource(of("v2")).Namespace(namespace)
	t.Cleanup(func() { // while the webhooks are served
		for _, r := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
			gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: r}
			if err := client.Resource(gvr).Delete(context.Background(), group, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		if err := client.Resource(crds).Delete(context.Background(), "widgets."+group, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	devclustertest.ApplyIn(t, cluster, namespace, []byte(manifest))
	// The API server learns of configurations a little later.
	for start := time.Now(); ; <-time.After(50 * time.Millisecond) {
		o, err := w.v1.Create(t.Context(), w.widget("probe", "deny"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if o != nil && err == nil && time.Since(start) > time.Minute || err != nil && !apierrors.IsInvalid(err) {
			t.Fatalf("the webhook is not called: %v", err)
		}
		o, errDefault := w.v1.Create(t.Context(), w.widget("probe", ""), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if errDefault != nil {
			t.Fatal(errDefault)
		}
		if size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size"); err != nil && size == 3 {
			return w
		}
	}
}

func (w *widgets) widget(name, do string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.routes.Conversions[0].Group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"do": do, "unknown": []any{"a"}},
	}}
}

// TestServer_WithAnAPIServer: a real API server calls the webhooks, and understands their answers.
func TestServer_WithAnAPIServer(t *testing.T) {
	w := newWidgets(t)
	ctx := t.Context()
	created, err := w.v1.Create(ctx, w.widget("a", "keep"), metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("defaults", func(t *testing.T) {
		if want := map[string]any{"do": "keep", "unknown": []any{"a"}, "size": int64(3)}; !equal(created.Object["spec"], want) || created.Object["status"] != nil || len(created.GetManagedFields()) != 1 {
			t.Errorf("%v", created.Object)
		}
		if a := w.validated(); a.Operation != abi.OperationCreate || a.Old != nil || a.Key.Name != "a" || a.DryRun || a.User.Name == "" || a.Options == nil {
			t.Errorf("%+v", a)
		}
	})
	t.Run("update and dry run", func(t *testing.T) {
		if err := unstructured.SetNestedField(created.Object, "warn", "spec", "do"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.v1.Update(ctx, created, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
		a := w.validated()
		old, err := abi.DecodeObject(a.Old)
		if err != nil || a.Operation != abi.OperationUpdate || !a.DryRun || !equal(old["spec"].(map[string]any)["do"], "keep") {
			t.Errorf("%+v: %v", a, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Contains(w.warnings, "spec.do: is old") {
			t.Errorf("warnings %q", w.warnings)
		}
	})
	t.Run("deny", func(t *testing.T) {
		_, err := w.v1.Create(ctx, w.widget("b", "deny"), metav1.CreateOptions{})
		status, _ := errors.AsType[*apierrors.StatusError](err)
		if !apierrors.IsInvalid(err) || status.ErrStatus.Message != `admission webhook "v.webhook.test" denied the request: not this` ||
			len(status.ErrStatus.Details.Causes) != 1 || status.ErrStatus.Details.Causes[0].Field != "spec.do" {
			t.Errorf("%+v", err)
		}
		if err := w.v1.Delete(ctx, "a", metav1.DeleteOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("delete: %v", err)
		}
	})
	t.Run("a failed call", func(t *testing.T) {
		_, err := w.v1.Create(ctx, w.widget("c", "fail"), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), `failed calling webhook "v.webhook.test"`) || !strings.Contains(err.Error(), "guest[validate]: trapped at main.go:7") {
			t.Errorf("the reason is not shown: %v", err)
		}
	})
	t.Run("convert", func(t *testing.T) {
		const n = 500
		var wg sync.WaitGroup
		for k := range 10 {
			wg.Go(func() {
				for i := k; i < n; i += 10 {
					if _, err := w.v1.Create(ctx, w.widget(fmt.Sprintf("n%d", i), ""), metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		list, err := w.v2.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != n+1 {
			t.Fatalf("%d objects: %v", len(list.Items), err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; !strings.HasSuffix(o.GetAPIVersion(), "/v2") || o.GetUID() == "" || len(o.GetManagedFields()) == 0 {
				t.Fatalf("%v", o.Object)
			}
		}
		w.broken.Store(true)
		if _, err := w.v2.Get(ctx, "n1", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "cannot convert it") {
			t.Errorf("the reason is not shown: %v", err)
		}
		w.broken.Store(false)
	})
	created, err = w.v1.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(created.Object, "", "spec", "do"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.v1.Update(ctx, created, metav1.UpdateOptions{}); err != nil { // so that it can be deleted
		t.Error(err)
	}
}
