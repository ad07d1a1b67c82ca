// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of the manifests' containers.
const user = "65532:65532"

// layout is a directory with an OCI layout.
type layout struct {
	dir string
	err error // the first error
}

// writeImage writes an image of static Linux binaries, one for each architecture,
// and returns its digest.
func writeImage(dir, version string, at time.Time, binaries []string) (digest.Digest, error) {
	l := &layout{dir: dir}
	list := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, path := range binaries {
		d, err := l.manifest(path, version, at)
		if err != nil {
			return "", fmt.Errorf("binary[%s]: %w", path, err)
		}
		list.Manifests = append(list.Manifests, d)
	}
	all := l.json(ocispec.MediaTypeImageIndex, list)
	named := all
	named.Annotations = map[string]string{ocispec.AnnotationRefName: version}
	l.file(ocispec.ImageIndexFile, marshal(ocispec.Index{Versioned: list.Versioned, Manifests: []ocispec.Descriptor{named}}))
	l.file(ocispec.ImageLayoutFile, marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}))
	return all.Digest, l.err
}

// manifest writes the image of one binary, which has only the binary and the TLS roots.
func (l *layout) manifest(path, version string, at time.Time) (ocispec.Descriptor, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	arch, err := architecture(binary)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	files := tarOf(at, "wasmctl", binary, "etc/ssl/certs/ca-certificates.crt", roots())
	config := ocispec.Image{
		Created: &at, Platform: ocispec.Platform{OS: "linux", Architecture: arch},
		Config: ocispec.ImageConfig{User: user, Entrypoint: []string{"/wasmctl"}, WorkingDir: "/", Labels: map[string]string{
			ocispec.AnnotationTitle: "wasmctl", ocispec.AnnotationVersion: version, ocispec.AnnotationCreated: at.Format(time.RFC3339),
		}},
		RootFS:  ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(files)}},
		History: []ocispec.History{{Created: &at, CreatedBy: "make image"}},
	}
	d := l.json(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: l.json(ocispec.MediaTypeImageConfig, config), Layers: []ocispec.Descriptor{l.blob(ocispec.MediaTypeImageLayerGzip, compress(files))},
	})
	d.Platform = &config.Platform
	return d, l.err
}

// architecture returns the architecture of a binary. The binary must be static, because the image
// has nothing else.
func architecture(binary []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return "", err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New("it is not static: build it with CGO_ENABLED=0")
		}
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	default:
		return "", fmt.Errorf("%v: want amd64 or arm64", f.Machine)
	}
}

// roots returns the certificates that Mozilla trusts without conditions, in the version of go.mod.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writes to memory do not fail
		}
	}
	return b.Bytes()
}

// tarOf creates an archive of a program and a file.
func tarOf(at time.Time, program string, binary []byte, file string, content []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []struct {
		tar.Header

		content []byte
	}{{tar.Header{Name: program, Mode: 0o755}, binary}, {tar.Header{Name: file, Mode: 0o644}, content}} {
		h.ModTime, h.Size, h.Format = at, int64(len(h.content)), tar.FormatUSTAR
		_ = w.WriteHeader(&h.Header) // writes to memory do not fail
		_, _ = w.Write(h.content)
	}
	_ = w.Close()
	return b.Bytes()
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.Copy(w, bytes.NewReader(b)) // writes to memory do not fail
	_ = w.Close()
	return out.Bytes()
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

func (l *layout) json(mediaType string, v any) ocispec.Descriptor {
	return l.blob(mediaType, marshal(v))
}

func (l *layout) blob(mediaType string, content []byte) ocispec.Descriptor {
	d := digest.FromBytes(content)
	l.file(filepath.Join(ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded()), content)
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

func (l *layout) file(name string, content []byte) {
	path := filepath.Join(l.dir, name)
	if l.err == nil {
		l.err = os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // everybody may read it
	}
	if l.err == nil {
		l.err = os.WriteFile(path, content, 0o644) //nolint:gosec // everybody may read it
	}
}
