// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/wasmctl/wasmctl/host/strictjson"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Limits of attachments to a manifest: their number, the blobs of each, the bytes of a blob, and
// the bytes that a Verify reads in total.
const (
	maxAttached     = 32
	maxAttachedBlob = 1 << 20
	maxAttachedAll  = 8 << 20
)

// Subject is the subject of a Verify.
type Subject struct {
	// Digest is that of the manifest. If Manifest is an index, Inner is the module's own manifest.
	Digest          string
	Manifest, Inner []byte

	manifest ocispec.Descriptor
	from     source
	read     int64 // bytes of attachments so far
	proof    []byte
}

// Keep stores a proof with the module if it is admitted: see Artifact.Proof.
func (s *Subject) Keep(proof []byte) { s.proof = proof }

// Attachment is attached to a manifest, for example a signature.
type Attachment struct {
	// Type is the artifact's type. Annotations are those of the manifest.
	Type        string
	Annotations map[string]string
	Blobs       []Blob
	// Err, if not nil, is the reason why it cannot be read. There are no Blobs then.
	Err error
	// Digest is the digest of its manifest.
	Digest string
}

// Blob is content with its description.
type Blob struct {
	MediaType   string
	Annotations map[string]string
	Content     []byte
}

// Attached returns the referrers of a type. If the registry does not have that API, they are found
// by the tag of referrers.
func (s *Subject) Attached(ctx context.Context, artifactType string) ([]Attachment, error) {
	var found []ocispec.Descriptor
	mayBe := []string{artifactType, "", ocispec.MediaTypeEmptyJSON} // some registries list the type of the config
	err := s.from.Referrers(ctx, s.manifest, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if slices.Contains(mayBe, d.ArtifactType) {
				found = append(found, d)
			}
		}
		if len(found) > maxAttached {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	var list []Attachment
	for _, d := range found[:min(len(found), maxAttached)] {
		a, subject, err := s.attachment(ctx, string(d.Digest))
		if cannotAsk(err) || s.read > maxAttachedAll {
			return nil, err
		}
		if err != nil { // anybody can attach one; others may be valid
			list = append(list, Attachment{Type: artifactType, Digest: string(d.Digest), Err: err})
			continue
		}
		if subject == s.Digest && a.Type == artifactType {
			list = append(list, *a)
		}
	}
	return list, nil
}

// cannotAsk reports whether an error means that the question could not be asked.
func cannotAsk(err error) bool { return err != nil && kindIs(err, ErrUnreachable, ErrUnauthorized) }

// Tagged returns the artifact with the tag sha256-HEX.SUFFIX, which older tools use. It is nil if
// there is none.
func (s *Subject) Tagged(ctx context.Context, suffix string) (*Attachment, error) {
	a, _, err := s.attachment(ctx, tagOf(s.Digest)+"."+suffix)
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return nil, nil //nolint:nilnil // as documented
	case err != nil && !cannotAsk(err) && s.read <= maxAttachedAll:
		return &Attachment{Err: err}, nil
	}
	return a, err
}

// attachment reads an attachment, and returns the manifest to which it is attached.
func (s *Subject) attachment(ctx context.Context, reference string) (a *Attachment, subject string, err error) {
	b, err := fetchManifest(ctx, s.from, reference)
	if err != nil {
		return nil, "", err
	}
	if err := s.count(b.Size); err != nil {
		return nil, "", err
	}
	var m ocispec.Manifest
	if err := strictjson.Unmarshal(b.content, &m); err != nil {
		return nil, "", fmt.Errorf("manifest[%s]: %w", reference, err)
	}
	a = &Attachment{Type: m.ArtifactType, Annotations: m.Annotations}
	if a.Type == "" {
		a.Type = m.Config.MediaType
	}
	for _, d := range m.Layers[:min(len(m.Layers), maxAttached)] {
		if err := checkDescriptor(d, maxAttachedBlob); err != nil {
			return nil, "", fmt.Errorf("manifest[%s]: layer: %w", reference, err)
		}
		if err := s.count(d.Size); err != nil {
			return nil, "", err
		}
		content, err := fetchBlob(ctx, s.from, d)
		if err != nil {
			return nil, "", err
		}
		a.Blobs = append(a.Blobs, Blob{d.MediaType, d.Annotations, content})
	}
	a.Digest = string(b.Digest)
	if m.Subject != nil {
		subject = string(m.Subject.Digest)
	}
	return a, subject, nil
}

// tagOf returns the start of the tags of a digest's attachments.
func tagOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// count fails if the total size is too large.
func (s *Subject) count(size int64) error {
	if s.read += size; s.read > maxAttachedAll {
		return as(ErrRefused, fmt.Errorf("manifest[%s]: its attachments have more than %s: remove some", s.Digest, humanize.Bytes(maxAttachedAll)))
	}
	return nil
}

// Attach attaches an artifact to a pinned manifest, as a referrer, and returns its digest.
func (c *Client) Attach(ctx context.Context, r Ref, a Attachment) (string, error) {
	if !r.Pinned() {
		return "", as(ErrRefused, fmt.Errorf("module[%s]: only a reference with a digest can have attachments: resolve it first", r))
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var done digest.Digest
	err := c.with(ctx, r, func(repo *remote.Repository) error {
		top, err := fetchManifest(ctx, repo, r.Digest)
		if err != nil {
			return err
		}
		m := ocispec.Manifest{ArtifactType: a.Type, Annotations: a.Annotations}
		m.Subject = &ocispec.Descriptor{MediaType: top.MediaType, Digest: top.Digest, Size: top.Size}
		done, err = pushAttached(ctx, repo, m, newBlob(ocispec.MediaTypeEmptyJSON, []byte("{}")), a.Blobs, "")
		return err
	})
	return string(done), err
}

// pushAttached pushes a manifest with blobs. Its name is a tag or, if that is "", the digest, which
// pushAttached returns.
func pushAttached(ctx context.Context, repo *remote.Repository, m ocispec.Manifest, config blob, list []Blob, tag string) (digest.Digest, error) {
	m.Versioned, m.MediaType, m.Config = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageManifest, config.Descriptor
	blobs := []blob{config}
	for _, b := range list {
		layer := newBlob(b.MediaType, b.Content)
		layer.Annotations = b.Annotations
		m.Layers = append(m.Layers, layer.Descriptor)
		blobs = append(blobs, layer)
	}
	done := newBlob(ocispec.MediaTypeImageManifest, encode(m))
	if err := pushBlobs(ctx, repo, blobs); err != nil {
		return "", err
	}
	return done.Digest, pushManifest(ctx, repo, done, cmp.Or(tag, string(done.Digest)))
}
