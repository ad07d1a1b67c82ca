// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of the manifests' containers.
const user = "65532:65532"

// layout has the files of an OCI layout, by name.
type layout map[string][]byte

// imageOf creates an image of static Linux binaries, one for each architecture, and returns its
// layout and its digest.
func imageOf(version string, at time.Time, binaries []string) (layout, digest.Digest, error) {
	l := layout{}
	list := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, file := range binaries {
		d, err := l.manifest(file, version, at)
		if err != nil {
			return nil, "", fmt.Errorf("binary[%s]: %w", file, err)
		}
		list.Manifests = append(list.Manifests, d)
	}
	all := l.json(ocispec.MediaTypeImageIndex, list)
	named := all
	named.Annotations = map[string]string{ocispec.AnnotationRefName: version}
	l[ocispec.ImageIndexFile] = marshal(ocispec.Index{Versioned: list.Versioned, Manifests: []ocispec.Descriptor{named}})
	l[ocispec.ImageLayoutFile] = marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	return l, all.Digest, nil
}

// manifest adds the image of one binary, which has only the binary and the TLS roots.
func (l layout) manifest(binaryFile, version string, at time.Time) (ocispec.Descriptor, error) {
	binary, err := os.ReadFile(binaryFile)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	arch, err := architecture(binary)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	files := tarOf(at, []file{{"wasmctl", binary, true}, {"etc/ssl/certs/ca-certificates.crt", roots(), false}})
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
	return d, nil
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

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

func (l layout) json(mediaType string, v any) ocispec.Descriptor {
	return l.blob(mediaType, marshal(v))
}

func (l layout) blob(mediaType string, content []byte) ocispec.Descriptor {
	d := digest.FromBytes(content)
	l[path.Join(ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded())] = content
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}
