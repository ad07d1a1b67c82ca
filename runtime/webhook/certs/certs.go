// SPDX-License-Identifier: Apache-2.0

// Package certs provides the serving certificates of webhooks: certificates that each replica makes for itself and replaces in time, or those
// of a directory.
//
// A certificate that a replica makes is self-signed, so it is also the authority that clients must trust. Its key never leaves the process.
// A replica serves a new certificate only after every client could learn about it: see Authority.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// organization marks the certificates of this package.
	organization = "wasmctl webhooks"
	// skew is the difference between the clocks of two machines that is tolerated.
	skew = time.Hour
	// maxBundle is the maximum number of certificates in a bundle. Each configuration contains the bundle once for every webhook, and its
	// size is limited by etcd.
	maxBundle = 64
)

// errNone is the error of a handshake before there is a certificate to serve.
var errNone = errors.New("webhook certificate: none is ready yet")

// generate makes a self-signed certificate for the hosts: DNS names and IP addresses. It is valid until a time after now; it begins before
// now, for clients whose clock is behind.
func generate(replica string, hosts []string, now time.Time, validity time.Duration) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("webhook certificate: key: %w", err)
	}
	// It signs nothing but itself, so it is not marked as an authority: with its key, one can serve these hosts, but no others.
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{organization}, CommonName: text(replica)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("webhook certificate[%s]: %w", replica, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("webhook certificate[%s]: %w", replica, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// text shortens a common name to the 64 bytes that X.509 permits.
func text(name string) string { return name[max(0, len(name)-64):] }

// encode returns certificates as PEM.
func encode(list ...*x509.Certificate) (out []byte) {
	for _, c := range list {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// decode returns those certificates of a PEM text that this package has made. It skips everything else, because others may write it.
func decode(text []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && len(c.Subject.Organization) == 1 && c.Subject.Organization[0] == organization && !c.IsCA {
			list = append(list, c)
		}
	}
	return list
}

// contains reports whether a bundle has the certificate.
func contains(bundle []byte, c *x509.Certificate) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if string(block.Bytes) == string(c.Raw) {
			return true
		}
	}
	return false
}
