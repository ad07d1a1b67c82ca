// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Resolve returns a reference with its current digest. A pinned reference is returned unchanged.
// For others, it sends a HEAD request to the registry.
func (c *Client) Resolve(ctx context.Context, r Ref) (Ref, error) {
	if r.Pinned() {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	err := c.with(ctx, r, func(repo *remote.Repository) error {
		at := r
		if r.Range != "" {
			tag, err := selectTag(ctx, repo, r)
			if err != nil {
				return err
			}
			at.Range, at.Tag = "", tag
		}
		d, err := head(ctx, repo, at.Tag)
		if err != nil {
			return err
		}
		if !digestForm.MatchString(string(d)) {
			return fmt.Errorf("the registry names digest %q: want one of sha256", d)
		}
		at.Digest = string(d)
		r = at
		return nil
	})
	return r, err
}

// head returns the digest of a tag. If the registry does not return it for HEAD, head requests the
// manifest.
func head(ctx context.Context, repo *remote.Repository, tag string) (digest.Digest, error) {
	d, err := repo.Manifests().Resolve(ctx, tag)
	if _, answered := errors.AsType[*errcode.ErrorResponse](err); err == nil || answered || kindIs(err, ErrUnreachable, ErrUnauthorized, ErrNotFound) {
		return d.Digest, err
	}
	b, err := fetchManifest(ctx, repo, tag)
	return b.Digest, err
}

func kindIs(err error, kinds ...error) bool {
	_, kind := kindOf(err)
	return slices.Contains(kinds, kind)
}

var errEnough = errors.New("enough")

// selectTag returns the tag with the highest version of a range.
func selectTag(ctx context.Context, repo *remote.Repository, r Ref) (string, error) {
	want, err := parseRange(r.Range)
	if err != nil {
		return "", err
	}
	var tags []string
	err = repo.Tags(ctx, "", func(page []string) error {
		if tags = append(tags, page...); len(tags) > maxTags {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return "", fmt.Errorf("the repository has more than %d tags: name one, and no range", maxTags)
	case err != nil:
		return "", err
	}
	if tag := highest(want, tags); tag != "" {
		return tag, nil
	}
	return "", as(ErrNotFound, fmt.Errorf("module[%s]: none of %d tags is a version of the range", r, len(tags)))
}

// Pull returns the module of a reference. If the registry does not answer, and the cache has the
// last digest of the tag, it returns that module and reports it as stale.
func (c *Client) Pull(ctx context.Context, r Ref) (*Artifact, error) {
	at, err := c.Resolve(ctx, r)
	var stale error
	if c.cache != nil && errors.Is(err, ErrUnreachable) && ctx.Err() == nil {
		if d := c.cache.resolved(r.moving()); d != "" {
			at, stale, err = r.At(string(d)), err, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if a := c.cached(at); a != nil {
		if a.Stale = stale; stale != nil {
			c.opts.Logger.Warn("the registry does not answer; using the last known digest of the tag", "module", at.String(), "error", stale.Error())
		}
		return a, nil
	}
	if stale != nil {
		return nil, stale
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var a *Artifact
	var blobs []blob
	err = c.with(ctx, at, func(repo *remote.Repository) error {
		a, blobs, err = c.fetch(ctx, repo, at, at.String())
		return err
	})
	if err == nil && c.cache != nil {
		if err := c.cache.put(ctx, at.repository(), r.moving(), blobs, a.Proof); err != nil {
			c.opts.Logger.Warn("cannot keep the module of a registry; the next start reads it again", "module", at.String(), "error", err.Error())
		}
	}
	return a, err
}

// cached returns a module of the cache that the policy has admitted, or nil.
func (c *Client) cached(at Ref) *Artifact {
	if c.cache == nil {
		return nil
	}
	proof, found := c.cache.has(at.repository(), at.digest())
	if !found {
		return nil
	}
	next, mediaType := at.digest(), ""
	for range 2 { // an index, and a manifest
		b := c.cache.blob(next, maxManifest)
		m, err := readManifest(mediaType, b, c.opts.MaxSize)
		if b == nil || err != nil {
			return nil
		}
		if m.index != nil {
			next, mediaType = m.index.Digest, m.index.MediaType
			continue
		}
		if wasm := c.cache.blob(m.layer.Digest, c.opts.MaxSize); wasm != nil {
			return &Artifact{Ref: at, Digest: at.Digest, Layer: string(m.layer.Digest), Annotations: m.annotations, Wasm: wasm, Proof: proof, Cached: true}
		}
		return nil
	}
	return nil
}

// fetch reads a module by digests. blobs are the manifests, the first of which has the digest of
// at, and the layer. name is the name of the module for errors.
func (c *Client) fetch(ctx context.Context, from source, at Ref, name string) (a *Artifact, blobs []blob, err error) {
	top, err := fetchManifest(ctx, from, at.Digest)
	if err != nil {
		return nil, nil, err
	}
	blobs = []blob{top}
	m, err := readManifest(top.MediaType, top.content, c.opts.MaxSize)
	if err == nil && m.index != nil {
		var inner blob
		if inner, err = fetchManifest(ctx, from, string(m.index.Digest)); err != nil {
			return nil, nil, err
		}
		blobs = append(blobs, inner)
		m, err = readManifest(inner.MediaType, inner.content, c.opts.MaxSize)
	}
	if err == nil && m.index != nil {
		err = errors.New("it is an index of indexes")
	}
	if err != nil {
		return nil, nil, err
	}
	s := &Subject{Digest: at.Digest, Manifest: top.content, manifest: top.Descriptor, from: from}
	if len(blobs) > 1 {
		s.Inner = blobs[1].content
	}
	if c.opts.Verify != nil {
		if err := c.opts.Verify(ctx, s); err != nil {
			return nil, nil, verdict(at, name, err)
		}
	}
	wasm, err := c.layer(ctx, from, at, m.layer)
	if err != nil {
		return nil, nil, err
	}
	a = &Artifact{Ref: at, Digest: at.Digest, Layer: string(m.layer.Digest), Annotations: m.annotations, Wasm: wasm, Proof: s.proof}
	return a, append(blobs, blob{m.layer, wasm}), nil
}

// verdict returns the error of a Verify: a refusal, unless it could not ask.
func verdict(r Ref, name string, err error) error {
	if kindIs(err, ErrUnreachable) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnauthorized) {
		return explain(r, err)
	}
	return as(ErrRefused, fmt.Errorf("module[%s]: is not admitted: %w", name, err))
}

// layer returns the bytes of a layer, checked against its descriptor. A manifest that names a layer is no proof that its
// reader may have it. So a cached layer is used only if it came from the same repository, and the registry confirms that
// the credentials give access to it.
func (c *Client) layer(ctx context.Context, from source, at Ref, d ocispec.Descriptor) ([]byte, error) {
	if repo, ok := from.(*remote.Repository); ok && c.cache != nil && c.cache.from(at.repository(), d.Digest) {
		if has, err := repo.Blobs().Exists(ctx, d); err == nil && has {
			if b := c.cache.blob(d.Digest, c.opts.MaxSize); b != nil && int64(len(b)) == d.Size {
				return b, checkWasm(b)
			}
		}
	}
	b, err := fetchBlob(ctx, from, d)
	if err != nil {
		return nil, err
	}
	return b, checkWasm(b)
}
