// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// hooks are the port of a binary's webhooks, and the folder and the CA of its certificate.
type hooks struct{ port, dir, ca string }

func newHooks(k *kubebuilder) hooks {
	k.Helper()
	dir, ca := servingCert(k)
	return hooks{freePort(k), dir, ca}
}

// register applies the project's webhook configurations for the binary.
func (k *kubebuilder) register() {
	k.Helper()
	text, err := os.ReadFile(k.dir + "/config/webhook/manifests.yaml")
	if err != nil {
		k.Fatal(err)
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var config map[string]any
		if err := yaml.Unmarshal(document, &config); err != nil {
			k.Fatal(err)
		}
		for _, w := range config["webhooks"].([]any) { //nolint:forcetypeassert // as controller-gen writes it
			path, _, err := unstructured.NestedString(w.(map[string]any), "clientConfig", "service", "path") //nolint:forcetypeassert // as above
			if err != nil {
				k.Fatal(err)
			}
			w.(map[string]any)["clientConfig"] = map[string]any{"url": "https://127.0.0.1:" + k.hooks.port + path, "caBundle": k.hooks.ca} //nolint:forcetypeassert // as above
		}
		if document, err = yaml.Marshal(config); err != nil {
			k.Fatal(err)
		}
		devclustertest.Apply(k.T, k.sides[0].cluster, document)
	}
}

// denied creates an object on both sides until both refuse it, and compares their reasons.
func (k *kubebuilder) denied(what string, r schema.GroupVersionResource, object map[string]any) {
	k.Helper()
	refusal := func(s *side) metav1.Status {
		_, err := s.of(r).Create(s.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if status, ok := err.(apierrors.APIStatus); ok {
			return status.Status()
		}
		return metav1.Status{}
	}
	var want, got metav1.Status
	k.sides[1].await(what, func() bool {
		want, got = refusal(k.sides[0]), refusal(k.sides[1])
		return want.Reason == metav1.StatusReasonInvalid && got.Reason == metav1.StatusReasonInvalid
	})
	if !reflect.DeepEqual(want, got) {
		k.Errorf("%s: native - and module +:\n%s", what, cmp.Diff(want, got))
	}
}

func freePort(k *kubebuilder) string {
	k.Helper()
	l, err := (&net.ListenConfig{}).Listen(k.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		k.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		k.Fatal(err)
	}
	if err != nil {
		k.Fatal(err)
	}
	return port
}

// servingCert writes tls.crt and tls.key for 127.0.0.1 to a directory, and returns it
// and the CA bundle for a CRD.
func servingCert(k *kubebuilder) (dir, caBundle string) {
	k.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		k.Fatal(err)
	}
	dir = k.TempDir()
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			k.Fatal(err)
		}
	}
	return dir, base64.StdEncoding.EncodeToString(cert)
}
