// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// source has manifests, the artifacts that are attached to them, and blobs: a repository of a
// registry, or an Archive. Its content is untrusted.
type source interface {
	// FetchReference returns the manifest of a tag or a digest.
	FetchReference(ctx context.Context, reference string) (ocispec.Descriptor, io.ReadCloser, error)
	// Fetch returns a blob.
	Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error)
	// Referrers calls page with the manifests that are attached to a manifest; an empty
	// artifactType means all.
	Referrers(ctx context.Context, of ocispec.Descriptor, artifactType string, page func([]ocispec.Descriptor) error) error
}

// fetchBlob returns the bytes of a blob whose size was checked.
func fetchBlob(ctx context.Context, from source, d ocispec.Descriptor) ([]byte, error) {
	body, err := from.Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was only read
	b, err := content.ReadAll(body, d)
	if err != nil {
		return nil, fmt.Errorf("blob[%s]: %w", d.Digest, err)
	}
	return b, nil
}

// fetchManifest returns the manifest of a tag or a digest as it was received. If it was requested
// by digest, the result has that digest, even if the registry sends other bytes.
func fetchManifest(ctx context.Context, from source, reference string) (blob, error) {
	d, body, err := from.FetchReference(ctx, reference)
	if err != nil {
		return blob{}, err
	}
	defer func() { _ = body.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	if err != nil {
		return blob{}, err
	}
	if len(b) > maxManifest {
		return blob{}, fmt.Errorf("manifest[%s]: is larger than %d bytes", reference, maxManifest)
	}
	got := newBlob(d.MediaType, b)
	if digestForm.MatchString(reference) && string(got.Digest) != reference {
		return blob{}, fmt.Errorf("manifest[%s]: its content has another digest, %s", reference, got.Digest)
	}
	return got, nil
}
