// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"

	restclient "k8s.io/client-go/rest"
)

// The files of the key material, in DataDir/pki. doneMark is written last: without it, the others may be incomplete, and all are created
// again.
const (
	caCert      = "ca.crt"
	caKey       = "ca.key"
	servingCert = "apiserver.crt"
	servingKey  = "apiserver.key"
	adminCert   = "admin.crt"
	adminKey    = "admin.key"
	saKey       = "sa.key"
	saPub       = "sa.pub"
	proxyCACert = "front-proxy-ca.crt"
	proxyCAKey  = "front-proxy-ca.key"
	proxyCert   = "front-proxy-client.crt"
	proxyKey    = "front-proxy-client.key"
	doneMark    = "done"
)

// proxyName is the name of the aggregation layer for the API server.
const proxyName = "front-proxy-client"

// pki is the key material of one control plane. It is stored in the data dir, so that kubeconfigs and service account tokens survive a
// restart.
type pki struct {
	dir      string
	caPEM    []byte
	adminPEM []byte // certificate of a member of system:masters
	adminKey []byte
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// ensurePKI reads the key material in dir, and creates it if it does not exist.
func ensurePKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("pki[%s]: make: %w", dir, err)
	}
	if _, err := os.Stat(p.file(doneMark)); err != nil {
		if err := p.generate(); err != nil {
			return nil, fmt.Errorf("pki[%s]: generate: %w", dir, err)
		}
	}
	for name, to := range map[string]*[]byte{caCert: &p.caPEM, adminCert: &p.adminPEM, adminKey: &p.adminKey} {
		data, err := os.ReadFile(p.file(name))
		if err != nil {
			return nil, fmt.Errorf("pki[%s]: read: %w: remove the directory to get new keys", dir, err)
		}
		*to = data
	}
	return p, nil
}

// adminClient returns the client configuration of an admin, without a rate limit.
func (p *pki) adminClient(url string) *restclient.Config {
	return &restclient.Config{
		Host: url,
		QPS:  -1,
		TLSClientConfig: restclient.TLSClientConfig{
			CAData: p.caPEM, CertData: p.adminPEM, KeyData: p.adminKey,
		},
	}
}

func (p *pki) generate() error {
	ca, err := p.newAuthority("devcluster-ca", caCert, caKey)
	if err != nil {
		return err
	}
	if err := p.newLeaf(ca, servingCert, servingKey, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)},
	}); err != nil {
		return err
	}
	if err := p.newLeaf(ca, adminCert, adminKey, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "devcluster-admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return err
	}
	proxyCA, err := p.newAuthority("front-proxy-ca", proxyCACert, proxyCAKey)
	if err != nil {
		return err
	}
	if err := p.newLeaf(proxyCA, proxyCert, proxyKey, &x509.Certificate{
		Subject:     pkix.Name{CommonName: proxyName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return err
	}
	if err := p.newServiceAccountKey(); err != nil {
		return err
	}
	return os.WriteFile(p.file(doneMark), nil, 0o600)
}

// newServiceAccountKey creates the key pair for signing and verifying service account tokens.
func (p *pki) newServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := p.writeKey(saKey, key); err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return p.writePEM(saPub, "PUBLIC KEY", pub)
}
