// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// certificate returns a self-signed certificate for 127.0.0.1 with a common name.
func certificate(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func poolOf(list ...*tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range list {
		pool.AddCert(c.Leaf)
	}
	return pool
}

// TestServer_DemandsACertificateForAdmissions, because the API server has none for conversions.
func TestServer_DemandsACertificateForAdmissions(t *testing.T) {
	own, api, other := certificate(t, "server"), certificate(t, "kube-apiserver"), certificate(t, "somebody")
	s := New(Config{
		Address: "127.0.0.1:0", GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil },
		Clients: poolOf(api, other), ClientName: "kube-apiserver",
	})
	s.Add("jobs", "", jobs())
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for _, c := range []struct {
		what   string
		client *tls.Certificate
		path   string
		code   int
	}{
		{"the API server", api, "/validate", http.StatusOK},
		{"another name", other, "/validate", http.StatusUnauthorized},
		{"no certificate", nil, "/validate", http.StatusUnauthorized},
		{"a conversion without a certificate", nil, "/convert", http.StatusOK},
	} {
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: poolOf(own), ServerName: "localhost"}
		if c.client != nil {
			config.Certificates = []tls.Certificate{*c.client}
		}
		body := reviewOf(t)
		if c.path == ConvertPath {
			body = conversionReview("example.com/v2", job)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Addr().String()+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		transport := &http.Transport{TLSClientConfig: config}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		_ = response.Body.Close()
		transport.CloseIdleConnections()
		if response.StatusCode != c.code {
			t.Errorf("%s: status %d, want %d", c.what, response.StatusCode, c.code)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMetrics_HasTheExpiryOfTheCertificate that is served, once there is one.
func TestMetrics_HasTheExpiryOfTheCertificate(t *testing.T) {
	c := certificate(t, "server")
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }
	const name = "wasmctl_webhook_certificate_expiry_timestamp_seconds"
	if got := series(t, NewMetrics(get), name); !slices.Equal(got, []string{""}) {
		t.Errorf("%q", got)
	}
	c = &tls.Certificate{}
	if got := series(t, NewMetrics(get), name); len(got) > 0 {
		t.Errorf("without a certificate: %q", got)
	}
}
