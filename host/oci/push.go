// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"oras.land/oras-go/v2/registry/remote"
)

// PushOptions are the options of Push.
type PushOptions struct {
	// Image pushes the module as an image, for registries that refuse artifacts.
	Image bool
	// Annotations are the annotations of the manifest: see Describe.
	Annotations map[string]string
	// Created, if not zero, is recorded in the artifact, which changes its digest.
	Created time.Time
}

// epoch is the time in the artifact, because the layout requires one: the same bytes must have the
// same digest.
var epoch = time.Unix(0, 0)

// Push pushes a module to a registry, and returns its reference with the digest. The same module
// with the same options has the same digest everywhere. If the reference has another digest, Push
// returns an error.
func (c *Client) Push(ctx context.Context, r Ref, wasm []byte, o PushOptions) (Ref, error) {
	if r.Range != "" {
		return r, as(ErrRefused, fmt.Errorf("module[%s]: cannot be pushed to a range: name a tag", r))
	}
	if err := checkWasm(wasm); err != nil {
		return r, as(ErrRefused, fmt.Errorf("module[%s]: cannot be pushed: %w", r, err))
	}
	if o.Created.IsZero() {
		o.Created = epoch
	}
	p := pack(wasm, o.Image, o.Created, o.Annotations)
	if r.Pinned() && r.Digest != string(p.manifest.Digest) {
		return r, as(ErrRefused, fmt.Errorf("module[%s]: cannot be pushed: its digest is %s", r, p.manifest.Digest))
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	err := c.with(ctx, r, func(repo *remote.Repository) error {
		if err := pushBlobs(ctx, repo, []blob{p.config, p.layer}); err != nil {
			return err
		}
		reference := r.Tag
		if reference == "" {
			reference = string(p.manifest.Digest)
		}
		return pushManifest(ctx, repo, p.manifest, reference)
	})
	if err != nil && !o.Image && refusesType(err) {
		err = as(ErrRefused, fmt.Errorf("%w; registry[%s] refuses artifacts of type %s: push the module as an image, with --format image", err, r.Host, ConfigType))
	}
	return r.At(string(p.manifest.Digest)), err
}

// pushBlobs pushes the blobs that the registry does not have.
func pushBlobs(ctx context.Context, repo *remote.Repository, blobs []blob) error {
	for _, b := range blobs {
		found, err := repo.Blobs().Exists(ctx, b.Descriptor)
		if err != nil {
			return err
		}
		if found {
			continue
		}
		if err := repo.Blobs().Push(ctx, b.Descriptor, bytes.NewReader(b.content)); err != nil {
			return fmt.Errorf("blob[%s]: %w", b.Digest, err)
		}
	}
	return nil
}

// pushManifest pushes a manifest and, if it has a subject, announces that.
func pushManifest(ctx context.Context, repo *remote.Repository, b blob, reference string) error {
	if b.Size > maxManifest {
		return errors.New("the manifest is too large: give it fewer annotations")
	}
	return repo.Manifests().PushReference(ctx, b.Descriptor, bytes.NewReader(b.content), reference)
}
