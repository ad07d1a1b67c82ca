// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

// built returns the path of a static binary of wasmctl.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wasmctl")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/wasmctl")
	cmd.Dir = filepath.Join("..", "..") // another Go module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestImage_IsStaticAndReproducible: the same binaries give the same digest. A library for OCI
// layouts finds an image for each architecture, with an unprivileged user and a program that runs.
func TestImage_IsStaticAndReproducible(t *testing.T) {
	amd64 := built(t)
	binary, err := os.ReadFile(amd64)
	if err != nil {
		t.Fatal(err)
	}
	arm64 := filepath.Join(t.TempDir(), "arm64")
	if err := os.WriteFile(arm64, append(append(bytes.Clone(binary[:18]), 0xb7, 0), binary[20:]...), 0o600); err != nil { // e_machine
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0).UTC()
	files, first, err := imageOf("1.2.3", at, []string{amd64, arm64})
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := imageOf("1.2.3", at, []string{amd64, arm64}); err != nil || again != first {
		t.Errorf("%s, then %s: %v", first, again, err)
	}
	dir := t.TempDir()
	if err := replaceDir(dir, files); err != nil {
		t.Fatal(err)
	}
	store, err := oci.NewFromFS(t.Context(), os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	root, err := store.Resolve(t.Context(), "1.2.3")
	if err != nil || root.Digest != first {
		t.Fatalf("%+v: %v", root, err)
	}
	fetch := func(d ocispec.Descriptor, into any) []byte {
		t.Helper()
		b, err := content.FetchAll(t.Context(), store, d)
		if err != nil {
			t.Fatal(err)
		}
		if into != nil && json.Unmarshal(b, into) != nil {
			t.Fatal(string(b))
		}
		return b
	}
	var index ocispec.Index
	fetch(root, &index)
	for i, arch := range []string{"amd64", "arm64"} {
		var m ocispec.Manifest
		var image ocispec.Image
		fetch(index.Manifests[i], &m)
		fetch(m.Config, &image)
		c := image.Config
		if p := index.Manifests[i].Platform; p.Architecture != arch || p.OS != "linux" || image.Architecture != arch {
			t.Errorf("%+v, %s, want %s", p, image.Architecture, arch)
		}
		if c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "/wasmctl" || c.Labels[ocispec.AnnotationVersion] != "1.2.3" || !image.Created.Equal(at) {
			t.Errorf("%+v", image)
		}
		layer := untar(t, fetch(m.Layers[0], nil))
		if arch == "amd64" && !bytes.Equal(layer["wasmctl"], binary) {
			t.Error("another binary")
		}
		if !x509.NewCertPool().AppendCertsFromPEM(layer["etc/ssl/certs/ca-certificates.crt"]) {
			t.Error("there are no certificates")
		}
		if arch == "amd64" {
			runs(t, layer["wasmctl"])
		}
	}
}

// runs runs the program of an image without any other file.
func runs(t *testing.T, binary []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wasmctl")
	if err := os.WriteFile(path, binary, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := exec.Command(path, "version")
	cmd.Env = []string{"PATH="}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "wasmctl ") {
		t.Errorf("%v: %s", err, out)
	}
}

func untar(t *testing.T, layer []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImage_RefusesWhatDoesNotRunAlone: a file that is not a static binary is refused, because the image
// contains no libraries.
func TestImage_RefusesWhatDoesNotRunAlone(t *testing.T) {
	for _, path := range []string{"/bin/sh", "release_test.go"} {
		if _, _, err := imageOf("1", time.Now(), []string{path}); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
}

// TestBillOfMaterials_ListsWhatIsLinked: the list has each module of a binary with its version, and Go's
// standard library.
func TestBillOfMaterials_ListsWhatIsLinked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := billOfMaterials(self, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct{ Components []component }
	if err := json.Unmarshal(b, &bom); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range bom.Components {
		all[c.Name] = c.Version
	}
	if all["std"] == "" || all["github.com/opencontainers/image-spec"] == "" || all["github.com/opencontainers/go-digest"] != "v1.0.0" {
		t.Errorf("%v", all)
	}
}

// TestPublish_IsReproducibleAndComplete: the same parts give the same bytes. Each program has an archive with the files
// that accompany it, the checksums cover all other files, and the plugin of kubectl names the archives by their sums.
func TestPublish_IsReproducibleAndComplete(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	stage := t.TempDir()
	if err := writeFiles(stage, map[string][]byte{
		"wasmctl-darwin-arm64": program, "devcluster-darwin-arm64": program,
		"share/wasmctl/LICENSE": []byte("license"), "share/wasmctl/man/wasmctl.1": []byte("manual"), "share/devcluster/LICENSE": []byte("license"),
		"chart/Chart.yaml": []byte("name: wasmctl"), "chart/templates/a.yaml": []byte("a"),
	}); err != nil {
		t.Fatal(err)
	}
	p := parts{
		binaries: []string{filepath.Join(stage, "wasmctl-darwin-arm64"), filepath.Join(stage, "devcluster-darwin-arm64")},
		share:    filepath.Join(stage, "share"), chart: filepath.Join(stage, "chart"), version: "v1.2.3", at: time.Unix(1_800_000_000, 0).UTC(),
	}
	files, err := publish(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := publish(p); err != nil || !maps.EqualFunc(files, again, bytes.Equal) {
		t.Errorf("the second release has other bytes: %v", err)
	}
	for name, want := range map[string]string{
		"wasmctl-darwin-arm64.tar.gz": "LICENSE man/wasmctl.1 wasmctl", "devcluster-darwin-arm64.tar.gz": "LICENSE devcluster",
		"wasmctl-1.2.3.tgz": "wasmctl/Chart.yaml wasmctl/templates/a.yaml",
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(untar(t, files[name]))), " "); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(files[sums])), "\n")
	if len(lines) != len(files)-1 {
		t.Errorf("%d sums of %d files", len(lines), len(files))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if sum != sha256Of(files[name]) {
			t.Errorf("%s is not the sum of %s", sum, name)
		}
	}
	for _, want := range []string{"sha256: " + sha256Of(files["wasmctl-darwin-arm64.tar.gz"]), "version: v1.2.3", "/releases/download/v1.2.3/wasmctl-darwin-arm64.tar.gz"} {
		if !strings.Contains(string(files["wasmctl-krew.yaml"]), want) {
			t.Errorf("%q is not in\n%s", want, files["wasmctl-krew.yaml"])
		}
	}
	p.binaries = []string{self}
	if _, err := publish(p); err == nil {
		t.Errorf("%s is accepted, although it names no platform", self)
	}
}

// TestReplaceDir_IsCompleteOrAsBefore: a release that cannot be written is not half there, next to checksums of all of it.
func TestReplaceDir_IsCompleteOrAsBefore(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "dist")
	for _, c := range []struct {
		files map[string][]byte
		want  []string
	}{
		{map[string][]byte{"a": nil, "b": nil}, []string{"a", "b"}},
		{map[string][]byte{"c": nil, "d": nil, "d/e": nil}, []string{"a", "b"}}, // d cannot be both
		{map[string][]byte{"c": nil}, []string{"c"}},
	} {
		err := replaceDir(dir+"/", c.files)
		files, readErr := filesOf(dir, "")
		var got []string
		for _, f := range files {
			got = append(got, f.name)
		}
		left, globErr := filepath.Glob(parent + "/*")
		if errors.Join(readErr, globErr) != nil || (err == nil) != (len(c.files) < 3) || !slices.Equal(got, c.want) || len(left) != 1 {
			t.Errorf("%v: %v (%v), among %v", err, got, readErr, left)
		}
	}
}

// TestModule_CanBeInstalled: go install refuses a module whose go.mod replaces or excludes another one.
func TestModule_CanBeInstalled(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		if strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "exclude") {
			t.Errorf("go.mod: %s", line)
		}
	}
}
