package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Bounds of what is attached to a manifest: how many attachments are read, and
// blobs of each, the bytes of a blob, and those of all that a Verify reads.
const (
	maxAttached     = 32
	maxAttachedBlob = 1 << 20
	maxAttachedAll  = 8 << 20
)

// Subject is what a Verify judges.
type Subject struct {
	// Ref is the reference, with its digest. Digest is the manifest's, Layer the
	// module's. If Manifest is an index, Inner is the module's own manifest.
	Ref             Ref
	Digest, Layer   string
	Manifest, Inner []byte

	manifest ocispec.Descriptor
	repo     *remote.Repository
	read     int64 // bytes of attachments, until now
	proof    []byte
}

// Keep has something kept with the module, if it is admitted: see Artifact.Proof.
func (s *Subject) Keep(proof []byte) { s.proof = proof }

// Attachment is what somebody has attached to a manifest, such as a signature.
type Attachment struct {
	// Type is the artifact's type. Annotations are the manifest's.
	Type        string
	Annotations map[string]string
	Blobs       []Blob
	// Err, if not nil, says why it cannot be read; there are no Blobs then.
	Err error
	// Digest is that of its manifest.
	Digest string
}

// Blob is content with what describes it.
type Blob struct {
	MediaType   string
	Annotations map[string]string
	Content     []byte
}

// Attached returns the referrers of a type: of a registry without that API, those of
// its tag.
func (s *Subject) Attached(ctx context.Context, artifactType string) ([]Attachment, error) {
	var found []ocispec.Descriptor
	mayBe := []string{artifactType, "", ocispec.MediaTypeEmptyJSON} // some registries list the type of the config
	err := s.repo.Referrers(ctx, s.manifest, "", func(page []ocispec.Descriptor) error {
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
		if err != nil { // somebody has attached it; others may be good
			list = append(list, Attachment{Type: artifactType, Digest: string(d.Digest), Err: err})
			continue
		}
		if subject == s.Digest && a.Type == artifactType {
			list = append(list, *a)
		}
	}
	return list, nil
}

// cannotAsk reports whether an error says nothing of what was asked for.
func cannotAsk(err error) bool { return err != nil && kindIs(err, ErrUnreachable, ErrUnauthorized) }

// Tagged returns what has the tag sha256-HEX.SUFFIX, which older tools use; nil where
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

// attachment reads one, and says which manifest it is attached to.
func (s *Subject) attachment(ctx context.Context, reference string) (a *Attachment, subject string, err error) {
	b, err := fetchManifest(ctx, s.repo, reference)
	if err != nil {
		return nil, "", err
	}
	if err := s.count(b.Size); err != nil {
		return nil, "", err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(b.content, &m); err != nil {
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
		content, err := fetchBlob(ctx, s.repo, d)
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

// tagOf is a digest as the tags of what is attached to it begin.
func tagOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// count refuses what is too much together.
func (s *Subject) count(size int64) error {
	if s.read += size; s.read > maxAttachedAll {
		return as(ErrRefused, fmt.Errorf("manifest[%s]: what is attached to it has more than %s: remove some", s.Digest, humanize.Bytes(maxAttachedAll)))
	}
	return nil
}

// Attach attaches something to a pinned manifest, as a referrer, and returns its
// digest.
func (c *Client) Attach(ctx context.Context, r Ref, a Attachment) (string, error) {
	if !r.Pinned() {
		return "", as(ErrRefused, fmt.Errorf("module[%s]: only what has a digest can have something attached: resolve it first", r))
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

// pushAttached pushes a manifest with blobs, under a tag or, if that is "", by its
// digest, which it returns.
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
