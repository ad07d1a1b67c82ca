// SPDX-License-Identifier: Apache-2.0

package keyless

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/host/oci/signature"
)

var wasm = []byte("\x00asm\x01\x00\x00\x00")

// TestPull_OfASignedModule: a client that requires the identity pulls a module with an attached
// bundle, and refuses it for another identity. The command does the same, and prints a reference
// that can be run.
func TestPull_OfASignedModule(t *testing.T) {
	reg := ocitest.New(t)
	s := services(t)
	trusted := trusting(t, s, false)
	ref, err := oci.Parse("oci://" + reg.Host + "/acme/greeter:1")
	if err != nil {
		t.Fatal(err)
	}
	c := oci.New(oci.Options{Transport: reg.Transport()})
	at, err := c.Push(t.Context(), ref, wasm, oci.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bundle := sign(t, s, identityA, issuerA, statement(t, at.Digest, signature.PredicateType))
	if _, err := c.Attach(t.Context(), at, oci.Attachment{Type: signature.BundleType, Blobs: []oci.Blob{{MediaType: signature.BundleType, Content: bundle}}}); err != nil {
		t.Fatal(err)
	}
	pull := func(identity string) error {
		options := oci.Options{Transport: reg.Transport()}
		options.Require(verifier(t, trusted, identity, issuerA).Policy())
		_, err := oci.New(options).Pull(t.Context(), ref)
		return err
	}
	if err := pull(identityA); err != nil {
		t.Error(err)
	}
	if err := pull("https://github.com/other/*"); !errors.Is(err, signature.ErrUnsigned) || !errors.Is(err, oci.ErrRefused) {
		t.Error(err)
	}

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "root.json"), trusted, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "wasmctl-keyless")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/wasmctl-keyless").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(args ...string) (stdout, stderr string, code int) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		var errOut strings.Builder
		cmd.Dir, cmd.Stderr, cmd.Env = dir, &errOut, []string{"HOME=" + dir}
		out, _ := cmd.Output() // the code says it
		return string(out), errOut.String(), cmd.ProcessState.ExitCode()
	}
	flags := []string{"--trusted-root", "root.json", "--verify-issuer", issuerA, "--insecure-registry", reg.Host}
	out, said, code := run(append(flags, "--verify-identity", "https://github.com/acme/*", ref.String())...)
	if pinned, err := oci.Parse(strings.TrimSpace(out)); code != 0 || err != nil || pinned.Digest != at.Digest || !strings.Contains(said, identityA) {
		t.Errorf("code %d: %s%s", code, out, said)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{append(flags, "--verify-identity", "https://github.com/other/*", ref.String()), 1, signature.ErrUnsigned.Error()},
		{append(flags, ref.String()), 1, "both are needed"},
		{append(flags, "--verify-identity", identityA), 2, "usage: "},
	} {
		if out, said, code := run(c.args...); out != "" || code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%q: code %d: %s%s", c.args, code, out, said)
		}
	}
}
