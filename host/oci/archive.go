// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/wasmctl/wasmctl/host/strictjson"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// maxEntries is the maximum number of files in an Archive.
const maxEntries = 10_000

// IsArchive reports whether a path is that of an Archive, and not of a module: it ends in .tar.
func IsArchive(path string) bool { return strings.HasSuffix(path, ".tar") }

// Archive is a tar file with an OCI image layout that has one module: Copy.WriteTo writes such a
// file, and so do other programs. Its content is untrusted. It implements source.
type Archive struct {
	path  string
	files map[string]section // by the name in the tar file
	top   ocispec.Descriptor // of the module
	// tags are the manifests by their tag, attached are those that refer to another one, by the
	// digest of the latter, and types are the media types of manifests.
	tags     map[string]ocispec.Descriptor
	attached map[digest.Digest][]ocispec.Descriptor
	types    map[digest.Digest]string
}

// section is a part of a file.
type section struct{ offset, size int64 }

// OpenArchive reads the index of an Archive.
func OpenArchive(path string) (*Archive, error) {
	a := &Archive{
		path: path, files: map[string]section{}, tags: map[string]ocispec.Descriptor{}, attached: map[digest.Digest][]ocispec.Descriptor{},
		types: map[digest.Digest]string{},
	}
	err := a.scan()
	if err == nil {
		err = a.readIndex()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failure.Usage.Wrap(fmt.Errorf("archive[%s]: %w", path, err))
	}
	if err != nil {
		return nil, a.wrong(err)
	}
	return a, nil
}

// wrong returns the error of an Archive that cannot be used.
func (a *Archive) wrong(err error) error {
	return as(ErrRefused, fmt.Errorf("archive[%s]: %w", a.path, err))
}

// scan finds the files in the tar file.
func (a *Archive) scan() error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it is no tar file with an OCI image layout: %w", err)
		case h.Typeflag != tar.TypeReg:
			continue
		case len(a.files) == maxEntries:
			return fmt.Errorf("it has more than %d files", maxEntries)
		}
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		a.files[path.Clean(h.Name)] = section{offset, h.Size}
	}
}

// attachedTag is the form of the tags of attachments: of signatures in the older format, and of
// the list of referrers.
var attachedTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}(\.[a-z]+)?$`)

// readIndex finds the module and its attachments.
func (a *Archive) readIndex() error {
	content, err := a.read(ocispec.ImageIndexFile, maxManifest)
	if err != nil {
		return fmt.Errorf("it is no OCI image layout: %w", err)
	}
	var index ocispec.Index
	if err := strictjson.Unmarshal(content, &index); err != nil {
		return fmt.Errorf("%s: %w", ocispec.ImageIndexFile, err)
	}
	if len(index.Manifests) > maxCopied {
		return fmt.Errorf("%s: it has more than %d manifests", ocispec.ImageIndexFile, maxCopied)
	}
	var found []ocispec.Descriptor
	for _, d := range index.Manifests {
		if err := checkDescriptor(d, maxManifest); err != nil {
			return fmt.Errorf("%s: %w", ocispec.ImageIndexFile, err)
		}
		content, err := a.read(blobName(d.Digest), maxManifest)
		if err != nil {
			return err
		}
		var m struct {
			Subject   *ocispec.Descriptor  `json:"subject"`
			Manifests []ocispec.Descriptor `json:"manifests"`
		}
		if err := strictjson.Unmarshal(content, &m); err != nil {
			return fmt.Errorf("manifest[%s]: %w", d.Digest, err)
		}
		for _, d := range append(m.Manifests, d) {
			a.types[d.Digest] = d.MediaType
		}
		tag := d.Annotations[ocispec.AnnotationRefName]
		if tag != "" {
			a.tags[tag] = d
		}
		switch {
		case m.Subject != nil:
			a.attached[m.Subject.Digest] = append(a.attached[m.Subject.Digest], d)
		case !attachedTag.MatchString(tag) && !slices.ContainsFunc(found, func(o ocispec.Descriptor) bool { return o.Digest == d.Digest }):
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("it has %s, and must have exactly one", humanize.Plural(len(found), "module"))
	}
	a.top = found[0]
	return nil
}

func blobName(d digest.Digest) string { return "blobs/sha256/" + d.Encoded() }

// read returns the content of a file in the tar file.
func (a *Archive) read(name string, most int64) ([]byte, error) {
	body, size, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was only read
	if size > most {
		return nil, fmt.Errorf("%s: its %s are more than it may have (%s)", name, humanize.Bytes(size), humanize.Bytes(most))
	}
	return io.ReadAll(body)
}

// open opens a file in the tar file. The error of a missing file matches errdef.ErrNotFound.
func (a *Archive) open(name string) (body io.ReadCloser, size int64, err error) {
	at, ok := a.files[name]
	if !ok {
		return nil, 0, fmt.Errorf("%s: %w", name, errdef.ErrNotFound)
	}
	f, err := os.Open(a.path)
	if err != nil {
		return nil, 0, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, at.offset, at.size), f}, at.size, nil
}

// FetchReference implements source.
func (a *Archive) FetchReference(_ context.Context, reference string) (ocispec.Descriptor, io.ReadCloser, error) {
	d, ok := a.tags[reference]
	if digestForm.MatchString(reference) {
		d, ok = ocispec.Descriptor{Digest: digest.Digest(reference)}, true
	}
	if !ok {
		return d, nil, fmt.Errorf("%s: %w", reference, errdef.ErrNotFound)
	}
	d.MediaType = cmp.Or(a.types[d.Digest], ocispec.MediaTypeImageManifest)
	body, _, err := a.open(blobName(d.Digest))
	return d, body, err
}

// Fetch implements source.
func (a *Archive) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	body, _, err := a.open(blobName(d.Digest))
	return body, err
}

// Referrers implements source.
func (a *Archive) Referrers(_ context.Context, of ocispec.Descriptor, _ string, page func([]ocispec.Descriptor) error) error {
	return page(a.attached[of.Digest])
}

// PullArchive returns the module in an Archive. Like a module from a registry, it must be admitted
// by Verify.
func (c *Client) PullArchive(ctx context.Context, a *Archive) (*Artifact, error) {
	m, _, err := c.fetchArchive(ctx, a)
	return m, err
}

func (c *Client) fetchArchive(ctx context.Context, a *Archive) (*Artifact, []blob, error) {
	m, blobs, err := c.fetch(ctx, a, Ref{Digest: string(a.top.Digest)}, a.path)
	if err != nil && !errors.Is(err, ErrRefused) {
		err = a.wrong(err)
	}
	return m, blobs, err
}

// ArchivedModule is the module in an Archive. It implements wasmctl.Signed.
type ArchivedModule struct {
	client *Client
	path   string

	mu    sync.Mutex
	proof []byte // of the last Read; guarded by mu
}

// ArchivedModule returns the module in the Archive at path, which is opened by each Read.
func (c *Client) ArchivedModule(path string) *ArchivedModule {
	return &ArchivedModule{client: c, path: path}
}

// Read implements wasmctl.Module.
func (m *ArchivedModule) Read(ctx context.Context) ([]byte, error) {
	a, err := OpenArchive(m.path)
	if err != nil {
		return nil, err
	}
	got, err := m.client.PullArchive(ctx, a)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proof = got.Proof
	return got.Wasm, nil
}

// Proof implements wasmctl.Signed.
func (m *ArchivedModule) Proof() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proof
}

// String returns the path.
func (m *ArchivedModule) String() string { return m.path }
