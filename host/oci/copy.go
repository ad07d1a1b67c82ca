// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// Limits of a Copy: the number of its manifests, and how deep manifests contain others.
const (
	maxCopied = 200
	maxDepth  = 3
)

// tagSuffixes end the tags of attachments in the older format: signatures, attestations, SBOMs.
var tagSuffixes = []string{legacySuffix, "att", "sbom"}

// Copy is a module with everything that is attached to it, such as signatures, byte for byte.
type Copy struct {
	Artifact *Artifact

	manifests []copied // each after those that it contains or refers to
	blobs     []blob
}

// copied is a manifest of a Copy.
type copied struct {
	blob

	tag       string // of an attachment in the older format
	contained bool   // in an index
}

// Copy reads a module from a registry, with everything that is attached to it.
func (c *Client) Copy(ctx context.Context, r Ref) (k *Copy, err error) {
	at, err := c.Resolve(ctx, r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	err = c.with(ctx, at, func(repo *remote.Repository) error {
		a, blobs, err := c.fetch(ctx, repo, at, at.String())
		if err == nil {
			k, err = c.copyAll(ctx, repo, a, blobs)
		}
		return err
	})
	return k, err
}

// CopyArchive reads the module of an Archive, with everything that is attached to it.
func (c *Client) CopyArchive(ctx context.Context, from *Archive) (*Copy, error) {
	a, blobs, err := c.fetchArchive(ctx, from)
	if err != nil {
		return nil, err
	}
	k, err := c.copyAll(ctx, from, a, blobs)
	if err != nil {
		return nil, from.wrong(err)
	}
	return k, nil
}

// Attached returns the number of artifacts that are attached to the module.
func (k *Copy) Attached() (n int) {
	for _, m := range k.manifests {
		if !m.contained && string(m.Digest) != k.Artifact.Digest {
			n++
		}
	}
	return n
}

// copyAll reads everything that a module consists of and that is attached to it. read has what was
// read already.
func (c *Client) copyAll(ctx context.Context, from source, a *Artifact, read []blob) (*Copy, error) {
	k := &copier{Copy: Copy{Artifact: a}, from: from, left: 2 * c.opts.MaxSize, known: map[digest.Digest]*blob{}, added: map[digest.Digest]bool{}}
	for i := range read {
		k.known[read[i].Digest] = &read[i]
	}
	if err := k.add(ctx, a.Digest, "", 0); err != nil {
		return nil, err
	}
	for i := 0; i < len(k.manifests); i++ { // an attachment may have attachments
		err := from.Referrers(ctx, k.manifests[i].Descriptor, "", func(page []ocispec.Descriptor) error {
			for _, d := range page {
				if err := k.add(ctx, string(d.Digest), "", 0); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, suffix := range tagSuffixes {
		tag := tagOf(a.Digest) + "." + suffix
		if err := k.add(ctx, tag, tag, 0); err != nil && !errors.Is(err, errdef.ErrNotFound) {
			return nil, err
		}
	}
	return &k.Copy, nil
}

// copier collects a Copy.
type copier struct {
	Copy

	from  source
	left  int64                   // how many bytes may still be read
	known map[digest.Digest]*blob // what was read before
	added map[digest.Digest]bool  // what the Copy has
}

// add adds a manifest, after everything that it contains.
func (k *copier) add(ctx context.Context, reference, tag string, depth int) error {
	m, known := k.known[digest.Digest(reference)]
	if !known {
		b, err := fetchManifest(ctx, k.from, reference)
		if err != nil {
			return err
		}
		m = &b
	}
	if k.added[m.Digest] {
		return nil
	}
	if len(k.manifests) == maxCopied || depth == maxDepth {
		return as(ErrRefused, fmt.Errorf("manifest[%s]: has too many attachments: remove some", k.Artifact.Digest))
	}
	var of struct {
		Config    *ocispec.Descriptor  `json:"config"`
		Layers    []ocispec.Descriptor `json:"layers"`
		Blobs     []ocispec.Descriptor `json:"blobs"`
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := strictjson.Unmarshal(m.content, &of); err != nil {
		return fmt.Errorf("manifest[%s]: %w", reference, err)
	}
	for _, d := range of.Manifests {
		if err := k.add(ctx, string(d.Digest), "", depth+1); err != nil {
			return fmt.Errorf("manifest[%s]: %w", reference, err)
		}
	}
	list := append(of.Layers, of.Blobs...)
	if of.Config != nil {
		list = append(list, *of.Config)
	}
	for _, d := range list {
		if err := k.addBlob(ctx, d); err != nil {
			return fmt.Errorf("manifest[%s]: %w", reference, err)
		}
	}
	k.added[m.Digest] = true
	k.manifests = append(k.manifests, copied{*m, tag, depth > 0})
	return k.count(m.Size)
}

// addBlob adds a blob.
func (k *copier) addBlob(ctx context.Context, d ocispec.Descriptor) error {
	if k.added[d.Digest] {
		return nil
	}
	if err := checkDescriptor(d, k.left); err != nil {
		return fmt.Errorf("blob[%s]: %w", d.Digest, err)
	}
	b, known := k.known[d.Digest]
	if !known {
		content, err := fetchBlob(ctx, k.from, d)
		if err != nil {
			return err
		}
		b = &blob{d, content}
	}
	k.added[d.Digest] = true
	k.blobs = append(k.blobs, *b)
	return k.count(d.Size)
}

// count fails if the total size is too large.
func (k *copier) count(size int64) error {
	if k.left -= size; k.left < 0 {
		return as(ErrRefused, fmt.Errorf("manifest[%s]: its attachments are too large: remove some", k.Artifact.Digest))
	}
	return nil
}

// WriteArchive writes an OCI image layout as a tar file: an Archive. The same Copy gives the same
// bytes.
func (k *Copy) WriteArchive(w io.Writer) error {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	blobs := slices.Clone(k.blobs)
	for _, m := range k.manifests {
		blobs = append(blobs, m.blob)
		if m.contained {
			continue
		}
		d, tag := m.Descriptor, m.tag
		if string(d.Digest) == k.Artifact.Digest {
			tag = cmp.Or(k.Artifact.Ref.Tag, latest) // other programs ask for a tag
		}
		if tag != "" {
			d.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
		}
		index.Manifests = append(index.Manifests, d)
	}
	t := tar.NewWriter(w)
	write := func(name string, content []byte) error {
		err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR})
		if err == nil {
			_, err = t.Write(content)
		}
		return err
	}
	err := write(ocispec.ImageLayoutFile, encode(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}))
	if err == nil {
		err = write(ocispec.ImageIndexFile, encode(index))
	}
	for _, b := range blobs {
		if err == nil {
			err = write(blobName(b.Digest), b.content)
		}
	}
	return errors.Join(err, t.Close())
}

// PushCopy pushes a Copy to a registry, byte for byte, so that digests and signatures stay valid. It
// returns the reference with the digest. The tag is set last. If the reference has another digest,
// PushCopy returns an error.
func (c *Client) PushCopy(ctx context.Context, r Ref, k *Copy) (Ref, error) {
	switch {
	case r.Range != "":
		return r, as(ErrRefused, fmt.Errorf("module[%s]: cannot be pushed to a range: name a tag", r))
	case r.Pinned() && r.Digest != k.Artifact.Digest:
		return r, as(ErrRefused, fmt.Errorf("module[%s]: cannot be pushed: its digest is %s", r, k.Artifact.Digest))
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	err := c.with(ctx, r, func(repo *remote.Repository) error {
		if err := pushBlobs(ctx, repo, k.blobs); err != nil {
			return err
		}
		var top blob
		for _, m := range k.manifests {
			if string(m.Digest) == k.Artifact.Digest {
				top = m.blob
			}
			if err := pushManifest(ctx, repo, m.blob, cmp.Or(m.tag, string(m.Digest))); err != nil {
				return err
			}
		}
		if r.Tag == "" {
			return nil
		}
		return pushManifest(ctx, repo, top, r.Tag)
	})
	return r.At(k.Artifact.Digest), err
}
