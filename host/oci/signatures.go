// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/wasmctl/wasmctl/host/oci/signature"
)

// legacySuffix is the suffix of the tag with signatures of cosign before version 3.
const legacySuffix = "sig"

// Require sets Verify and PolicyID so that Pull returns only modules whose manifest is signed as a
// policy requires. The proof is stored. The error for other modules matches signature.ErrUnsigned.
func (o *Options) Require(p signature.Policy) {
	o.PolicyID = p.ID()
	o.Verify = func(ctx context.Context, s *Subject) error {
		candidates, err := s.signatures(ctx)
		if err != nil {
			return err
		}
		manifests := [][]byte{s.Manifest}
		if s.Inner != nil {
			manifests = append(manifests, s.Inner)
		}
		proof, _, err := p.Prove(ctx, s.Digest, manifests, candidates)
		if err != nil {
			return err
		}
		if proof == nil {
			return nil
		}
		content, err := proof.Marshal()
		s.Keep(content)
		return err
	}
}

// signatures returns the candidates for signatures of the manifest, in both formats.
func (s *Subject) signatures(ctx context.Context) (list []signature.Candidate, err error) {
	old, err := s.Tagged(ctx, legacySuffix)
	if err != nil {
		return nil, fmt.Errorf("signatures: %w", err)
	}
	bundles, err := s.Attached(ctx, signature.BundleType)
	if err != nil {
		return nil, fmt.Errorf("signatures: %w", err)
	}
	if old != nil {
		from := "tag " + signature.LegacyTag(s.Digest)
		if old.Err != nil {
			list = append(list, signature.Candidate{From: from, Err: old.Err})
		}
		for _, b := range old.Blobs {
			if b.MediaType == signature.LegacyType {
				list = append(list, signature.Candidate{
					From: from, Payload: b.Content, Signature: b.Annotations[signature.AnnotationSignature],
					Certificate: b.Annotations[signature.AnnotationCertificate] != "",
				})
			}
		}
	}
	for _, a := range bundles {
		c := signature.Candidate{From: "referrer " + a.Digest, Err: a.Err}
		if a.Err == nil && (len(a.Blobs) != 1 || len(a.Blobs[0].Content) == 0) {
			c.Err = errors.New("it is not one bundle")
		} else if a.Err == nil {
			c.Bundle = a.Blobs[0].Content
		}
		list = append(list, c)
	}
	return list, nil
}

// Attestations returns the attestations of the manifest that a key of the policy has signed.
func (s *Subject) Attestations(ctx context.Context, p *signature.Policy) ([]signature.Attestation, error) {
	candidates, err := s.signatures(ctx)
	if err != nil {
		return nil, err
	}
	return p.Attestations(ctx, s.Digest, candidates), nil
}

// Sign signs the current manifest of a reference, and returns the reference with its digest. legacy
// selects the format of cosign before version 3.
func (c *Client) Sign(ctx context.Context, r Ref, key *signature.PrivateKey, legacy bool) (Ref, error) {
	at, err := c.Resolve(ctx, r)
	if err != nil {
		return r, err
	}
	if legacy {
		return at, c.signLegacy(ctx, at, key)
	}
	bundle, err := signature.SignBundle(at.Digest, key)
	if err != nil {
		return at, err
	}
	_, err = c.Attach(ctx, at, Attachment{
		Type:        signature.BundleType,
		Annotations: map[string]string{signature.AnnotationContent: signature.ContentDSSE, signature.AnnotationPredicate: signature.PredicateType},
		Blobs:       []Blob{{MediaType: signature.BundleType, Content: bundle}},
	})
	return at, err
}

// signLegacy adds a signature to those under the tag of a digest.
func (c *Client) signLegacy(ctx context.Context, r Ref, key *signature.PrivateKey) error {
	payload, sig, err := signature.SignLegacy(r.Digest, r.repository(), key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	return c.with(ctx, r, func(repo *remote.Repository) error {
		if _, err := fetchManifest(ctx, repo, r.Digest); err != nil {
			return err
		}
		s := &Subject{Digest: r.Digest, from: repo}
		before, err := s.Tagged(ctx, legacySuffix)
		switch {
		case err != nil:
			return err
		case before == nil:
			before = &Attachment{}
		case before.Err != nil:
			return fmt.Errorf("tag %s: cannot add to it: %w", signature.LegacyTag(r.Digest), before.Err)
		}
		list := append(before.Blobs, Blob{signature.LegacyType, map[string]string{signature.AnnotationSignature: sig}, payload})
		var layers []digest.Digest // cosign reads it as an image
		for _, b := range list {
			layers = append(layers, digest.FromBytes(b.Content))
		}
		config := newBlob(ocispec.MediaTypeImageConfig, encode(map[string]any{
			"architecture": "", "os": "", "config": map[string]any{}, "rootfs": ocispec.RootFS{Type: "layers", DiffIDs: layers},
		}))
		_, err = pushAttached(ctx, repo, ocispec.Manifest{Annotations: before.Annotations}, config, list, signature.LegacyTag(r.Digest))
		return err
	})
}
