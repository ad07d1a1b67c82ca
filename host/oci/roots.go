// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/x509"
	"errors"
	"fmt"
)

// AddRoots returns a copy of roots with the certificates of a PEM text added. If roots is nil, they are added to the
// system's certificate authorities.
func AddRoots(roots *x509.CertPool, pem []byte) (*x509.CertPool, error) {
	if roots == nil {
		system, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("the certificates of the system: %w", err)
		}
		roots = system
	}
	roots = roots.Clone()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("it has no certificate in PEM")
	}
	return roots, nil
}
