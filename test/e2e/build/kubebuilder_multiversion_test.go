// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var backupsV1 = schema.GroupVersionResource{Group: "storage.example.dev", Version: "v1", Resource: "backups"}

var backupsV2 = schema.GroupVersionResource{Group: "storage.example.dev", Version: "v2", Resource: "backups"}

var cronJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

// checkMultiVersion: users write both versions of a kind, and the controller reads one.
// The binary serves the conversion for both control planes, because a module serves
// none.
func checkMultiVersion(k *kubebuilder) {
	port := freePort(k)
	dir, ca := servingCert(k)
	conversion := fmt.Sprintf("spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n"+
		"      clientConfig: {url: 'https://127.0.0.1:%s/convert', caBundle: %s}\n", port, ca)
	k.Cleanup(func() { // otherwise the control plane would continue to call the webhook
		crds := k.sides[1].client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		if err := crds.Delete(context.WithoutCancel(k.Context()), "backups.storage.example.dev", metav1.DeleteOptions{}); err != nil {
			k.Error(err)
		}
	})
	k.start(func(crd string) string { return strings.Replace(crd, "spec:\n", conversion, 1) }, "-webhook-port="+port, "-webhook-cert-path="+dir)
	k.sides[0].child.WantLine("Serving webhook server")

	of := []schema.GroupVersionResource{backupsV1, backupsV2, cronJobs}
	ready := func(name, reason, schedule string) func(objects) bool {
		return func(all objects) bool {
			return all.condition("v1/backups/"+name, "Ready", reason) && all.condition("v2/backups/"+name, "Ready", reason) &&
				all.reads("v1/cronjobs/"+name, schedule, "spec", "schedule")
		}
	}
	k.step("one of v1", of, func(s *side) {
		s.apply("apiVersion: storage.example.dev/v1\nkind: Backup\nmetadata: {name: a}\nspec: {schedule: '30 2 * * *', image: 'tool:1'}\n")
	}, ready("a", "Scheduled", "30 2 * * *"))
	k.step("one of v2", of, func(s *side) {
		s.apply("apiVersion: storage.example.dev/v2\nkind: Backup\nmetadata: {name: b}\nspec: {schedule: {minute: '*/5', dayOfWeek: 1-5}, image: 'tool:1'}\n")
	}, ready("b", "Scheduled", "*/5 * * * 1-5"))
	k.step("an edit of v1 as v2", of, func(s *side) { s.merge(backupsV2, "a", `{"spec":{"schedule":{"hour":"4"}}}`) }, ready("a", "Scheduled", "30 4 * * *"))
	k.step("an edit of v2 as v1", of, func(s *side) { s.merge(backupsV1, "b", `{"spec":{"suspend":true}}`) }, ready("b", "Suspended", "*/5 * * * 1-5"))
	k.step("an edit of the CronJob", of, func(s *side) { s.merge(cronJobs, "a", `{"spec":{"schedule":"0 0 * * *"}}`) }, func(all objects) bool {
		return ready("a", "Scheduled", "30 4 * * *")(all) && all.reads("v1/cronjobs/a", "4", "metadata", "generation")
	})
	k.step("deletions", of, func(s *side) {
		s.remove(backupsV1, "a")
		s.remove(backupsV2, "b")
	}, func(all objects) bool { return len(all) == 0 })
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
