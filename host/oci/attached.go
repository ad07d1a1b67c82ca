package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
)

// Bounds of what is attached to a manifest: how many attachments are read, and
// blobs of each, and the bytes of a blob.
const (
	maxAttached     = 32
	maxAttachedBlob = 1 << 20
)

// Subject is what a Verify judges.
type Subject struct {
	// Ref is the reference, with its digest. Digest is the manifest's, Layer the
	// module's.
	Ref           Ref
	Digest, Layer string
	Manifest      []byte

	manifest ocispec.Descriptor
	repo     *remote.Repository
}

// Attachment is what somebody has attached to a manifest, such as a signature.
type Attachment struct {
	// Type is the artifact's type. Annotations are the manifest's.
	Type        string
	Annotations map[string]string
	Blobs       []Blob
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
		if err != nil {
			return nil, err
		}
		if subject == s.Digest && a.Type == artifactType {
			list = append(list, *a)
		}
	}
	return list, nil
}

// Tagged returns what has the tag sha256-HEX.SUFFIX, which older tools use; nil where
// there is none.
func (s *Subject) Tagged(ctx context.Context, suffix string) (*Attachment, error) {
	a, _, err := s.attachment(ctx, strings.Replace(s.Digest, ":", "-", 1)+"."+suffix)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, nil //nolint:nilnil // as documented
	}
	return a, err
}

// attachment reads one, and says which manifest it is attached to.
func (s *Subject) attachment(ctx context.Context, reference string) (a *Attachment, subject string, err error) {
	b, err := fetchManifest(ctx, s.repo, reference)
	if err != nil {
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
		content, err := fetchBlob(ctx, s.repo, d)
		if err != nil {
			return nil, "", err
		}
		a.Blobs = append(a.Blobs, Blob{d.MediaType, d.Annotations, content})
	}
	if m.Subject != nil {
		subject = string(m.Subject.Digest)
	}
	return a, subject, nil
}

// Attach attaches something to a pinned manifest, as a referrer, and returns its
// digest.
func (c *Client) Attach(ctx context.Context, r Ref, a Attachment) (string, error) {
	if !r.Pinned() {
		return "", as(ErrRefused, fmt.Errorf("module[%s]: only what has a digest can have something attached: resolve it first", r))
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var done blob
	err := c.with(ctx, r, func(repo *remote.Repository) error {
		top, err := fetchManifest(ctx, repo, r.Digest)
		if err != nil {
			return err
		}
		subject := ocispec.Descriptor{MediaType: top.MediaType, Digest: top.Digest, Size: top.Size}
		config := newBlob(ocispec.MediaTypeEmptyJSON, []byte("{}"))
		m := ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: a.Type,
			Config: config.Descriptor, Subject: &subject, Annotations: a.Annotations,
		}
		blobs := []blob{config}
		for _, b := range a.Blobs {
			layer := newBlob(b.MediaType, b.Content)
			layer.Annotations = b.Annotations
			m.Layers = append(m.Layers, layer.Descriptor)
			blobs = append(blobs, layer)
		}
		done = newBlob(ocispec.MediaTypeImageManifest, encode(m))
		if err := pushBlobs(ctx, repo, blobs); err != nil {
			return err
		}
		return pushManifest(ctx, repo, done, string(done.Digest))
	})
	return string(done.Digest), err
}
