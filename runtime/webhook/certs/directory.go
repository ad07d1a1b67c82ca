// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// files are the certificate and its key, as in a Secret of type kubernetes.io/tls.
var files = [2]string{"tls.crt", "tls.key"}

// Directory serves the certificate of a directory, for example a mounted Secret of cert-manager, and follows its changes.
type Directory struct {
	path string
	log  *slog.Logger

	served atomic.Pointer[tls.Certificate]

	mu sync.Mutex // serializes reads of the files
}

// NewDirectory reads the certificate of a directory.
func NewDirectory(path string, log *slog.Logger) (*Directory, error) {
	d := &Directory{path: path, log: log}
	_, err := d.read()
	return d, err
}

// GetCertificate returns the certificate to serve. It is for tls.Config.
func (d *Directory) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return d.served.Load(), nil
}

// Run follows changes of the files until ctx ends. While they are no valid pair, the old certificate remains in use.
func (d *Directory) Run(ctx context.Context) error {
	errs := make([]error, len(files))
	var running sync.WaitGroup
	for i, name := range files {
		file := filewatch.File{
			Path:     filepath.Join(d.path, name),
			OnChange: func(context.Context, []byte) { d.reload() },
			OnError:  func(err error) { d.log.Error("webhook certificate", "error", err) },
		}
		running.Go(func() { errs[i] = file.Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// reload is called after each change of a file, and at the start of Run.
func (d *Directory) reload() {
	switch changed, err := d.read(); {
	case err != nil:
		d.log.Warn("the old webhook certificate remains in use", "error", err)
	case changed:
		d.log.Info("webhook certificate replaced", "directory", d.path)
	}
}

// read reads both files, and reports whether the certificate has changed.
func (d *Directory) read() (changed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var contents [2][]byte
	for i, name := range files {
		if contents[i], err = os.ReadFile(filepath.Join(d.path, name)); err != nil {
			return false, fmt.Errorf("webhook certificate: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return false, fmt.Errorf("webhook certificate[%s]: %w", d.path, err)
	}
	old := d.served.Swap(&pair)
	return old == nil || !bytes.Equal(old.Certificate[0], pair.Certificate[0]), nil
}
