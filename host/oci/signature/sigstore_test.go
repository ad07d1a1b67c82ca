// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// TestSigstore_SignsForUs: what sigstore's own libraries have written, keys and both
// formats, is read and verified. The files are of sigstore-go 1.1.4, sigstore 1.10
// and go-securesystemslib 0.10; their password is "wasmctl".
func TestSigstore_SignsForUs(t *testing.T) {
	for _, kind := range []string{"ecdsa", "ed25519", "rsa"} {
		read := func(ext string) []byte {
			t.Helper()
			b, err := os.ReadFile(filepath.Join("testdata", "sigstore", kind+ext))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		public, err := ParsePublicKey(read(".pub"))
		if err != nil {
			t.Fatal(err)
		}
		private, err := ParsePrivateKey(read(".key"), []byte("wasmctl"))
		if err != nil || private.Fingerprint() != public.Fingerprint() {
			t.Errorf("%s: %v", kind, err)
		}
		policy := Policy{Keys: []*Key{public}}
		for _, c := range []Candidate{{From: "bundle", Bundle: read(".json")}, {From: "legacy", Payload: read(".payload"), Signature: string(read(".sig"))}} {
			if _, err := policy.Verify(t.Context(), digestA, []Candidate{c}); err != nil {
				t.Errorf("%s, %s: %v", kind, c.From, err)
			}
			if _, err := policy.Verify(t.Context(), digestB, []Candidate{c}); err == nil {
				t.Errorf("%s, %s: verifies for another digest", kind, c.From)
			}
		}
	}
}

var writeTo = flag.String("signature.write", "", "write signatures of each kind of key to this directory, for other programs to verify")

// TestSigstore_Write writes what other programs are to verify.
func TestSigstore_Write(t *testing.T) {
	if *writeTo == "" {
		t.Skip("SKIPPED: -signature.write is not set")
	}
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(*writeTo, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range testKeys(t) {
		name := []string{"ecdsa", "ed25519", "rsa"}[i]
		c := sign(t, true, digestA, key)
		write(name+".pub", spki(t, key.public))
		write(name+".json", sign(t, false, digestA, key).Bundle)
		write(name+".payload", c.Payload)
		write(name+".sig", []byte(c.Signature))
	}
	private, public, err := GenerateKey([]byte("wasmctl"))
	if err != nil {
		t.Fatal(err)
	}
	write("generated.key", private)
	write("generated.pub", public)
}
