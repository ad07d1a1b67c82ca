// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasoci "oras.land/oras-go/v2/content/oci"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/host/oci/signature"
)

// saved copies a module to a file.
func saved(t testing.TB, c *oci.Client, r oci.Ref) (path string, k *oci.Copy) {
	t.Helper()
	k, err := c.Copy(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var b, again bytes.Buffer
	if err := errors.Join(k.WriteArchive(&b), k.WriteArchive(&again)); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Fatalf("%v, or not the same bytes", err)
	}
	return written(t, b.Bytes()), k
}

func written(t testing.TB, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, path string) *oci.Archive {
	t.Helper()
	a, err := oci.OpenArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A module that goes through a file to another registry has the same digest, and whoever trusted it
// before trusts it still: signatures of both formats, and everything else that is attached, go along.
func TestCopy_KeepsWhatIsAttached(t *testing.T) {
	key, other := newKey(t), newKey(t)
	for name, layers := range map[string][]ocitest.Layer{"api": nil, "tag": {without}} {
		from, to := ocitest.New(t, layers...), ocitest.New(t, layers...)
		wasm := module(1, 1000)
		at := push(t, client(from), ref(t, from, "a/b:1"), wasm)
		for _, legacy := range []bool{true, false} {
			if _, err := client(from).Sign(t.Context(), at, key, legacy); err != nil {
				t.Fatal(err)
			}
		}
		sbom, err := client(from).Attach(t.Context(), at, oci.Attachment{Type: "text/spdx", Blobs: []oci.Blob{{MediaType: "text/spdx", Content: []byte("x")}}})
		if err != nil {
			t.Fatal(err)
		}
		onSBOM, err := client(from).Attach(t.Context(), at.At(sbom), oci.Attachment{Type: "text/note", Blobs: []oci.Blob{{MediaType: "text/note", Content: []byte("y")}}})
		if err != nil {
			t.Fatal(err)
		}
		path, k := saved(t, client(from), ref(t, from, "a/b:1"))
		if k.Attached() != 4 || k.Artifact.Ref != at {
			t.Errorf("%s: %d attachments of %s", name, k.Attached(), k.Artifact.Ref)
		}
		if _, err := client(from, signedBy(other)).PullArchive(t.Context(), opened(t, path)); !errors.Is(err, signature.ErrUnsigned) || !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: with another key: %v", name, err)
		}
		got, err := client(from, signedBy(key)).PullArchive(t.Context(), opened(t, path))
		if err != nil || !bytes.Equal(got.Wasm, wasm) || !slices.Equal(signers(t, got), []string{key.Fingerprint()}) {
			t.Errorf("%s: %v", name, err)
		}
		k, err = client(to, signedBy(key)).CopyArchive(t.Context(), opened(t, path))
		if err != nil {
			t.Fatal(err)
		}
		there, err := client(to).PushCopy(t.Context(), ref(t, to, "c/d:2"), k)
		if err != nil || there.Digest != at.Digest || there.Tag != "2" {
			t.Fatalf("%s: %v, %v", name, there, err)
		}
		again, k := saved(t, client(to, signedBy(key)), ref(t, to, "c/d:2"))
		if k.Attached() != 4 {
			t.Errorf("%s: %d attachments", name, k.Attached())
		}
		for _, d := range []string{sbom, onSBOM} {
			if _, body, err := opened(t, again).FetchReference(t.Context(), d); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				_ = body.Close()
			}
		}
		if _, err := client(to).PushCopy(t.Context(), ref(t, to, "c/d:2").At(sbom), k); !errors.Is(err, oci.ErrRefused) {
			t.Errorf("%s: pushed to another digest: %v", name, err)
		}
	}
}

// Another program finds the module by its tag, and its attachments.
func TestCopy_IsReadByOthers(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	if _, err := client(reg).Sign(t.Context(), at, newKey(t), false); err != nil {
		t.Fatal(err)
	}
	path, _ := saved(t, client(reg), at)
	store, err := orasoci.NewFromTar(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Resolve(t.Context(), "1")
	if err != nil || string(d.Digest) != at.Digest {
		t.Fatal(d, err)
	}
	if list, err := store.Predecessors(t.Context(), d); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}

// The manifests of an index come along, also those that are not of this module.
func TestCopy_OfAnIndex(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	also := push(t, client(reg), ref(t, reg, "a/b:2"), module(2, 100))
	index := func(wasm, arm oci.Ref) string {
		list := []ocispec.Descriptor{}
		for arch, r := range map[string]oci.Ref{"wasm": wasm, "arm64": arm} {
			list = append(list, ocispec.Descriptor{
				MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(r.Digest), Size: int64(len(manifest(t, reg, r))), Platform: &ocispec.Platform{Architecture: arch, OS: "any"},
			})
		}
		b, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageIndex, "manifests": list})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	put(t, reg, "3", ocispec.MediaTypeImageIndex, index(at, also))
	path, k := saved(t, client(reg), ref(t, reg, "a/b:3"))
	if k.Attached() != 0 {
		t.Errorf("%d attachments", k.Attached())
	}
	to := ocitest.New(t)
	k, err := client(to).CopyArchive(t.Context(), opened(t, path))
	if err != nil {
		t.Fatal(err)
	}
	there, err := client(to).PushCopy(t.Context(), ref(t, to, "x/y:3"), k)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client(to).Pull(t.Context(), there); err != nil || !bytes.Equal(got.Wasm, module(1, 100)) {
		t.Error(err)
	}
}

// manifest returns the manifest of a reference as the registry sends it.
func manifest(t testing.TB, reg *ocitest.Registry, r oci.Ref) (content []byte) {
	t.Helper()
	c := client(reg, func(o *oci.Options) {
		o.Verify = func(_ context.Context, s *oci.Subject) error { content = s.Manifest; return nil }
	})
	if _, err := c.Pull(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return content
}

// layout returns a tar file.
func layout(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Typeflag: tar.TypeReg, Mode: 0o600})
		if _, wErr := io.WriteString(w, content); err != nil || wErr != nil {
			t.Fatal(err, wErr)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An archive that is damaged, or that has not exactly one module, is refused with the reason.
func TestArchive_RefusesOthers(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	path, _ := saved(t, client(reg), at)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(size string) string {
		return `{"mediaType":"` + ocispec.MediaTypeImageManifest + `","digest":"` + at.Digest + `","size":` + size + `}`
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"a module":         {module(1, 1000), "no tar file"},
		"cut off":          {good[:1000], "index.json"},
		"nothing":          {layout(t, nil), "no OCI image layout"},
		"no module":        {layout(t, map[string]string{"index.json": `{"manifests":[]}`}), "it has 0 modules"},
		"a manifest less":  {layout(t, map[string]string{"index.json": `{"manifests":[` + entry("10") + `]}`}), "not found"},
		"a huge manifest":  {layout(t, map[string]string{"index.json": `{"manifests":[` + entry("1000000000000") + `]}`}), "more than it may have"},
		"no digest":        {layout(t, map[string]string{"index.json": `{"manifests":[{"digest":"../../x","size":1}]}`}), "want one of sha256"},
		"many manifests":   {layout(t, map[string]string{"index.json": `{"manifests":[` + strings.Repeat(entry("2")+",", 200) + entry("2") + `]}`, "blobs/sha256/" + at.Digest[7:]: "{}"}), "more than 200 manifests"},
		"another manifest": {layout(t, map[string]string{"index.json": `{"manifests":[` + entry("2") + `]}`, "blobs/sha256/" + at.Digest[7:]: "{}"}), "another digest"},
		"another module":   {bytes.Replace(good, module(1, 100)[8:40], module(2, 100)[8:40], 1), "mismatch"},
	} {
		a, err := oci.OpenArchive(written(t, c.content))
		if err == nil {
			_, err = client(reg).PullArchive(t.Context(), a)
		}
		if !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "archive[") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := oci.OpenArchive(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzOpenArchive(f *testing.F) {
	f.Add(layout(f, map[string]string{"index.json": `{"manifests":[{"digest":"sha256:` + strings.Repeat("a", 64) + `","size":2}]}`, "blobs/sha256/" + strings.Repeat("a", 64): "{}"}))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := oci.OpenArchive(written(t, content))
		if err == nil {
			_, err = oci.New(oci.Options{}).CopyArchive(t.Context(), a)
		}
		if err == nil || !errors.Is(err, oci.ErrRefused) {
			t.Errorf("%v", err)
		}
	})
}
