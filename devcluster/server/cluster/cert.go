// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"time"
)

// certYears is the validity of every certificate: longer than any data dir exists.
const certYears = 10

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority creates a self-signed authority and writes it to the two files.
func (p *pki) newAuthority(name, certFile, keyFile string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	now := time.Now()
	tmpl := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour), // clocks differ between a host and its virtual machines
		NotAfter:              now.AddDate(certYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	if err := p.writePEM(certFile, "CERTIFICATE", der); err != nil {
		return authority{}, err
	}
	return authority{cert: cert, key: key}, p.writeKey(keyFile, key)
}

// newLeaf creates a key and a certificate from tmpl that is signed by ca, and writes both to the two files.
func (p *pki) newLeaf(ca authority, certFile, keyFile string, tmpl *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	tmpl.SerialNumber = newSerial()
	tmpl.NotBefore, tmpl.NotAfter = ca.cert.NotBefore, ca.cert.NotAfter
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	if err := p.writePEM(certFile, "CERTIFICATE", der); err != nil {
		return err
	}
	return p.writeKey(keyFile, key)
}

// newSerial returns 120 random bits: never 0, and short enough for RFC 5280 (4.1.2.2).
func newSerial() *big.Int {
	b := make([]byte, 15)
	_, _ = rand.Read(b) // never returns an error
	n := new(big.Int).SetBytes(b)
	return n.Add(n, big.NewInt(1))
}

func (p *pki) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return p.writePEM(name, "EC PRIVATE KEY", der)
}

func (p *pki) writePEM(name, kind string, der []byte) error {
	return os.WriteFile(p.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
