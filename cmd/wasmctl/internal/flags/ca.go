// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"crypto/x509"
	"os"
	"strings"

	"github.com/wasmctl/wasmctl/host/oci"
)

// CA is the value of a flag that names files of certificates, in PEM. Setting it reads the file.
type CA struct {
	files []string
	roots *x509.CertPool // the system's, and those of the files; nil without a file
}

// Set implements pflag.Value.
func (c *CA) Set(file string) error {
	pem, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if c.roots, err = oci.AddRoots(c.roots, pem); err != nil {
		return err
	}
	c.files = append(c.files, file)
	return nil
}

// String implements pflag.Value.
func (c *CA) String() string { return strings.Join(c.files, ",") }

// Type implements pflag.Value.
func (c *CA) Type() string { return "stringArray" }
