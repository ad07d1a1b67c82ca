// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// TestCA_ReadsCertificates: a file without a certificate is refused when the flags are parsed.
func TestCA_ReadsCertificates(t *testing.T) {
	file := func(name string, content []byte) string {
		name = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := file("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ocitest.New(t).Certificate()}))
	for path, want := range map[string]string{good: "", file("key.pem", []byte("hello")): "has no certificate", "missing.pem": "no such file"} {
		var r Registry
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.Bind(f)
		err := f.Parse([]string{"--registry-ca", path})
		if want == "" && (err != nil || r.CA.roots == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
