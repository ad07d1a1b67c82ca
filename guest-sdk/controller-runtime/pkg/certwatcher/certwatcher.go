// SPDX-License-Identifier: Apache-2.0

// Package certwatcher has the watcher for the certificates of servers. A module
// has no server, so this one reads nothing.
package certwatcher

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"
)

// CertWatcher represents the watcher of a certificate.
type CertWatcher struct {
	sync.RWMutex
	certPath string
}

// New returns a watcher that reads no files, because they belong to a server
// that a module does not have.
func New(certPath, _ string) (*CertWatcher, error) {
	return &CertWatcher{certPath: certPath}, nil
}

// WithWatchInterval has no effect.
func (w *CertWatcher) WithWatchInterval(time.Duration) *CertWatcher { return w }

// RegisterCallback has no effect.
func (w *CertWatcher) RegisterCallback(func(tls.Certificate)) {}

// GetCertificate returns an error.
func (w *CertWatcher) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, w.ReadCertificate()
}

// ReadCertificate returns an error.
func (w *CertWatcher) ReadCertificate() error {
	return fmt.Errorf("certificate[%s]: a module does not read certificates: it has no server", w.certPath)
}

// Start waits until ctx is done.
func (w *CertWatcher) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Watch has no effect.
func (w *CertWatcher) Watch() {}

// NeedLeaderElection returns false.
func (w *CertWatcher) NeedLeaderElection() bool { return false }
