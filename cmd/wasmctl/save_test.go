// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// TestSave_LoadAndVerify: a signed module goes through a file into another registry, and verify accepts
// it at each place with its key, and nowhere with another one.
func TestSave_LoadAndVerify(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("COSIGN_PASSWORD", "secret")
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	from, to := ocitest.NewPlain(t), ocitest.NewPlain(t)
	insecure := []string{"--insecure-registry", from.Host + "," + to.Host}
	run := func(want, line string) string {
		t.Helper()
		got := says(t, line, insecure...)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		return got
	}
	for _, key := range []string{"a", "b"} {
		if out, err := signs(t, "--generate-key", key); err != nil {
			t.Fatal(out, err)
		}
	}
	ref, err := oci.Parse(from.Host + "/team/greeter:1")
	if err != nil {
		t.Fatal(err)
	}
	at, err := oci.New(oci.Options{Insecure: []string{from.Host}}).Push(t.Context(), ref, []byte("\x00asm\x01\x00\x00\x00"), oci.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run("no signature of it was found", "save "+ref.String()+" --verify-key a.pub")
	if _, err := os.Stat("greeter.oci.tar"); err == nil {
		t.Error("an unsigned module was saved")
	}
	run("signed by ", "sign "+ref.String()+" --key a.key")
	run(at.String()+"\ngreeter.oci.tar: ", "save "+ref.String()+" --verify-key a.pub")
	run("with 1 attached artifact", "save "+ref.String()+" -o other.tar")
	run("want a name that ends in .tar", "save "+ref.String()+" -o x.zip")
	loaded := "oci://" + to.Host + "/mirror/greeter:2"
	run("signed with another key", "load greeter.oci.tar "+loaded+" --verify-key b.pub")
	run(loaded+"@"+at.Digest+"\nwith 1 attached artifact\nsigned by sha256:", "load greeter.oci.tar "+loaded+" --verify-key a.pub")
	for _, module := range []string{ref.String(), "greeter.oci.tar", "other.tar", loaded} {
		run("\nmanifest "+at.Digest+"\nmodule sha256:", "verify "+module+" --verify-key a.pub")
		run(`"digest": "`+at.Digest+`"`, "verify "+module+" --verify-key a.pub -o json")
		run("signed with another key", "verify "+module+" --verify-key b.pub")
		run("sha256:", "inspect "+module+" --verify-key a.pub")
	}
	if err := os.WriteFile("m.wasm", []byte("\x00asm\x01\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("a file has no signature", "verify m.wasm --verify-key a.pub")
	run("--verify-key is missing", "verify greeter.oci.tar")
	run("archive[none.tar]", "load none.tar "+loaded)
	run("ARCHIVE is missing", "load")
}
