// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/host/oci/signature"
)

var cosign = flag.String("oci.cosign", "", "path of cosign 3, for the tests that sign with it and verify with it")

// runCosign runs cosign offline, in a folder of its own.
func runCosign(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), *cosign, args...) //nolint:gosec // the tester's
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "COSIGN_PASSWORD=wasmctl", "HOME="+dir, "SIGSTORE_NO_CACHE=true")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("cosign %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
	return out.String()
}

// otherKeys are PKCS#8 files of the other kinds of keys.
func otherKeys(t *testing.T) map[string][]byte {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for name, k := range map[string]any{"ed25519": ed, "rsa": r} {
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	return out
}

// TestCosign_SignsForUsAndWeForIt runs cosign itself, with keys that it has made:
// what one signs, in either format, the other verifies.
func TestCosign_SignsForUsAndWeForIt(t *testing.T) {
	if *cosign == "" {
		t.Skip("SKIPPED: -oci.cosign is not set: go install github.com/sigstore/cosign/v3/cmd/cosign@v3.1.1")
	}
	dir := t.TempDir()
	runCosign(t, dir, "generate-key-pair")
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // of the test
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key, err := signature.ParsePrivateKey(read("cosign.key"), []byte("wasmctl"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := signature.ParsePublicKey(read("cosign.pub"))
	if err != nil || own.Fingerprint() != key.Fingerprint() {
		t.Fatal(err)
	}
	private, public, err := signature.GenerateKey([]byte("wasmctl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ours.key": private, "ours.pub": public} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours, err := signature.ParsePrivateKey(private, []byte("wasmctl"))
	if err != nil {
		t.Fatal(err)
	}
	keys, names := []*signature.PrivateKey{key, ours}, []string{"cosign", "ours"}
	for name, content := range otherKeys(t) {
		if err := os.WriteFile(filepath.Join(dir, name+".pem"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		runCosign(t, dir, "import-key-pair", "--key", name+".pem", "--output-key-prefix", name)
		k, err := signature.ParsePrivateKey(read(name+".key"), []byte("wasmctl"))
		if err != nil {
			t.Fatal(err)
		}
		keys, names = append(keys, k), append(names, name)
	}
	for name, layers := range map[string][]ocitest.Layer{"api": nil, "tag": {without}} {
		for _, legacy := range []bool{false, true} {
			reg := ocitest.NewPlain(t, layers...)
			insecure := func(o *oci.Options) { o.Insecure = []string{reg.Host} }
			format := []string{"--new-bundle-format=true"}
			if legacy {
				format = []string{"--new-bundle-format=false"}
			}
			flags := func(verb string, more ...string) []string {
				return slices.Concat([]string{verb, "--allow-http-registry"}, format, more)
			}
			byCosign := push(t, client(reg, insecure), ref(t, reg, "a/b:1"), module(1, 100))
			byUs := push(t, client(reg, insecure), ref(t, reg, "a/b:2"), module(2, 100))
			for _, name := range names { // it reads our files too
				runCosign(t, dir, flags("sign", "--yes", "--key", name+".key", "--tlog-upload=false", "--use-signing-config=false", strings.TrimPrefix(byCosign.String(), oci.Scheme))...)
			}
			got, err := client(reg, insecure, signedBy(keys...)).Pull(t.Context(), byCosign)
			if err != nil {
				t.Errorf("%s, legacy %v: %v", name, legacy, err)
			} else if list := signers(t, got); len(list) != len(keys) {
				t.Errorf("%s, legacy %v: signed by %v", name, legacy, list)
			}
			for _, k := range keys {
				if _, err := client(reg, insecure).Sign(t.Context(), byUs, k, legacy); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range names {
				runCosign(t, dir, flags("verify", "--key", name+".pub", "--insecure-ignore-tlog=true", strings.TrimPrefix(byUs.String(), oci.Scheme))...)
			}
		}
	}
}
