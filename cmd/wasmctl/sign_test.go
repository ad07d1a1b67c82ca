// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// signs runs wasmctl sign and returns its output.
func signs(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newCmdRoot(streams{in: strings.NewReader(""), out: &out, err: &out})
	cmd.SetArgs(append([]string{"sign"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestSign_IsVerifiedWithItsKey: in both formats, a pull with the public key accepts the signature and
// a pull with another key is refused. sign prints the reference and the fingerprint.
func TestSign_IsVerifiedWithItsKey(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "secret")
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("HOME", dir)
	generate := func(name string) (prefix string) {
		t.Helper()
		prefix = filepath.Join(dir, name)
		out, err := signs(t, "--generate-key", prefix)
		if err != nil || !strings.Contains(out, prefix+".pub: sha256:") {
			t.Fatal(out, err)
		}
		return prefix
	}
	a, b := generate("a"), generate("b")
	if _, err := signs(t, "--generate-key", a); !errors.Is(err, os.ErrExist) {
		t.Errorf("a key is overwritten: %v", err)
	}
	if info, err := os.Stat(a + ".key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, format := range []string{"bundle", "legacy"} {
		reg := ocitest.NewPlain(t)
		pull := func(key string) error {
			t.Helper()
			policy, err := flags.VerifyKeys{key}.Policy()
			if err != nil {
				t.Fatal(err)
			}
			o := oci.Options{Insecure: []string{reg.Host}}
			o.Require(*policy)
			ref, err := oci.Parse(reg.Host + "/a/b:1")
			if err != nil {
				t.Fatal(err)
			}
			_, err = oci.New(o).Pull(t.Context(), ref)
			return err
		}
		ref, err := oci.Parse(reg.Host + "/a/b:1")
		if err != nil {
			t.Fatal(err)
		}
		at, err := oci.New(oci.Options{Insecure: []string{reg.Host}}).Push(t.Context(), ref, []byte("\x00asm\x01\x00\x00\x00"), oci.PushOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := signs(t, ref.String(), "--key", a+".key", "--format", format, "--insecure-registry", reg.Host)
		public, _ := os.ReadFile(a + ".pub")
		key, keyErr := signature.ParsePublicKey(public)
		if err != nil || keyErr != nil || out != at.String()+"\nsigned by "+key.Fingerprint()+"\n" {
			t.Errorf("%s: %s, %v, %v", format, out, err, keyErr)
		}
		if err := pull(a + ".pub"); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if err := pull(b + ".pub"); !errors.Is(err, signature.ErrUnsigned) {
			t.Errorf("%s: with another key: %v", format, err)
		}
		if _, err := signs(t, reg.Host+"/a/none:1", "--key", a+".key", "--insecure-registry", reg.Host); !errors.Is(err, oci.ErrNotFound) {
			t.Errorf("%s: %v", format, err)
		}
	}
	t.Setenv("COSIGN_PASSWORD", "other")
	if _, err := signs(t, "localhost:1/a/b", "--key", a+".key"); failure.Of(err) != failure.Usage || !strings.Contains(err.Error(), "the password is wrong") {
		t.Error(err)
	}
}

// TestSign_SaysWhatIsMissing: missing or invalid flags and keys are refused before any request to a
// registry.
func TestSign_SaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COSIGN_PASSWORD", "")
	if err := os.Unsetenv("COSIGN_PASSWORD"); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                                 "REF is missing",
		"oci://h/r":                        "--key is missing; --generate-key makes one",
		"oci://h/r --key k --format x":     "want bundle or legacy",
		"h --key k":                        "names no repository",
		"oci://h/r --generate-key x":       "signs nothing",
		"--generate-key " + dir + "/x":     "set COSIGN_PASSWORD",
		"oci://h/r --key " + dir + "/none": "no such file",
		"oci://h/r --key " + huge:          "is no key",
	} {
		if _, err := signs(t, strings.Fields(args)...); failure.Of(err) != failure.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	for want, keys := range map[string]flags.VerifyKeys{
		"no such file": {dir + "/none"}, "is no key": {huge}, "at most 20": make([]string, 21),
	} {
		if _, err := keys.Policy(); failure.Of(err) != failure.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	if p, err := (flags.VerifyKeys{}).Policy(); p != nil || err != nil {
		t.Error(p, err)
	}
}
