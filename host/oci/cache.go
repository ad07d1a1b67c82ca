// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/wasmctl/wasmctl/host/strictjson"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// Annotations of the entries in the cache's index, in addition to the standard name.
const (
	annotationRepository = "dev.wasmctl.repository"
	annotationAdmitted   = "dev.wasmctl.admitted"
	annotationProof      = "dev.wasmctl.proof" // digest of a blob
	annotationLayer      = "dev.wasmctl.layer" // digest of the module
)

// maxIndexed is the maximum number of entries in the index: users who can name images must not let it grow.
const maxIndexed = 4096

// lockLook is the interval at which a lock of another process is tried.
const lockLook = 20 * time.Millisecond

// cache is an OCI image layout in a directory that processes share. Blobs are named by their
// digests, and checked when they are read. An entry of the index means that a policy has admitted a
// manifest from a repository. The key authenticates the entry, so that an entry of somebody else,
// or of another policy, admits nothing.
type cache struct {
	dir    string
	policy string
	key    []byte
	most   int64 // bytes
}

func (c *cache) blobPath(d digest.Digest) string {
	return filepath.Join(c.dir, "blobs", "sha256", d.Encoded())
}

// admission authenticates an entry. name is the reference that was resolved to the digest, or ""
// for the digest itself.
func (c *cache) admission(repository, name string, d digest.Digest) string {
	mac := hmac.New(sha256.New, c.key)
	for _, part := range []string{"wasmctl-oci-1", c.policy, repository, name, string(d)} {
		_, _ = fmt.Fprintf(mac, "%d %s,", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

func (c *cache) entry(repository, name string, m ocispec.Descriptor) ocispec.Descriptor {
	notes := map[string]string{annotationRepository: repository, annotationAdmitted: c.admission(repository, name, m.Digest)}
	if name != "" {
		notes[ocispec.AnnotationRefName] = name
	}
	return ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: m.Size, Annotations: notes}
}

// admitted reports whether this cache's policy has created an entry.
func (c *cache) admitted(d ocispec.Descriptor) bool {
	want := c.admission(d.Annotations[annotationRepository], d.Annotations[ocispec.AnnotationRefName], d.Digest)
	return hmac.Equal([]byte(want), []byte(d.Annotations[annotationAdmitted]))
}

// resolved returns the last digest of a reference, or "" if it is unknown.
func (c *cache) resolved(name string) digest.Digest {
	for _, d := range c.index().Manifests {
		if name != "" && d.Annotations[ocispec.AnnotationRefName] == name && c.admitted(d) {
			return d.Digest
		}
	}
	return ""
}

// has reports whether the policy has admitted a manifest from a repository, and returns the stored
// proof, which needs no trust.
func (c *cache) has(repository string, d digest.Digest) (proof []byte, found bool) {
	for _, e := range c.index().Manifests {
		if e.Digest != d || e.Annotations[annotationRepository] != repository || e.Annotations[ocispec.AnnotationRefName] != "" || !c.admitted(e) {
			continue
		}
		of := proofOf(e)
		if of == "" {
			return nil, true
		}
		proof = c.blob(of, maxManifest)
		return proof, proof != nil
	}
	return nil, false
}

// from reports whether a layer was received from a repository, for any policy.
func (c *cache) from(repository string, layer digest.Digest) bool {
	return slices.ContainsFunc(c.index().Manifests, func(e ocispec.Descriptor) bool {
		return e.Annotations[annotationLayer] == string(layer) && e.Annotations[annotationRepository] == repository
	})
}

// proofOf returns the digest of an entry's proof, or "".
func proofOf(e ocispec.Descriptor) digest.Digest {
	if of := e.Annotations[annotationProof]; digestForm.MatchString(of) {
		return digest.Digest(of)
	}
	return ""
}

// blob reads a blob and marks it as used, so that trim removes it later.
func (c *cache) blob(d digest.Digest, most int64) []byte {
	b := c.read(d, most)
	if b != nil {
		c.touch(d)
	}
	return b
}

// touch sets the time of a blob's last use. The time of a write is not reliable: the clock of the
// file system may be behind by milliseconds.
func (c *cache) touch(d digest.Digest) {
	now := time.Now()
	_ = os.Chtimes(c.blobPath(d), now, now) // otherwise trim removes it too early
}

// read returns the bytes of a digest. It is nil if they are missing or damaged.
func (c *cache) read(d digest.Digest, most int64) []byte {
	path := c.blobPath(d)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil
	}
	b, err := os.ReadFile(path) //nolint:gosec // the path is a digest
	if err != nil || digest.FromBytes(b) != d {
		return nil
	}
	return b
}

// put stores blobs, with the proof. The first blob is the manifest of a reference, and the last one is the module. If
// there are too many bytes, it removes the least recently used blobs.
func (c *cache) put(ctx context.Context, repository, name string, blobs []blob, proof []byte) error {
	first := c.entry(repository, "", blobs[0].Descriptor)
	first.Annotations[annotationLayer] = string(blobs[len(blobs)-1].Digest)
	if proof != nil {
		b := newBlob("", proof)
		first.Annotations[annotationProof] = string(b.Digest)
		blobs = append(blobs, b)
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, b := range blobs {
		if c.blob(b.Digest, b.Size) != nil {
			continue
		}
		if err := atomicfile.Replace(c.blobPath(b.Digest), b.content, 0o600); err != nil {
			return err
		}
		c.touch(b.Digest)
	}
	index := c.index()
	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		at := d.Annotations[ocispec.AnnotationRefName]
		replaced := at == "" && d.Digest == blobs[0].Digest || at != "" && at == name
		return replaced && d.Annotations[annotationRepository] == repository && c.admitted(d)
	})
	index.Manifests = append(index.Manifests, first)
	if name != "" {
		index.Manifests = append(index.Manifests, c.entry(repository, name, blobs[0].Descriptor))
	}
	index.Manifests = index.Manifests[max(len(index.Manifests)-maxIndexed, 0):]
	removed := c.trim(&index, blobs[0].Digest)
	if err := atomicfile.Replace(filepath.Join(c.dir, ocispec.ImageLayoutFile), encode(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}), 0o600); err != nil {
		return err
	}
	if err := atomicfile.Replace(filepath.Join(c.dir, ocispec.ImageIndexFile), encode(index), 0o600); err != nil {
		return err
	}
	for _, path := range removed { // last, so that no index names a missing file
		_ = os.Remove(path)
	}
	return nil
}

// index returns the index of the cache. It is empty if it cannot be read.
func (c *cache) index() ocispec.Index {
	empty := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
	index := empty
	b, err := os.ReadFile(filepath.Join(c.dir, ocispec.ImageIndexFile))
	if err != nil || strictjson.Unmarshal(b, &index) != nil || index.Manifests == nil {
		return empty
	}
	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool { return !digestForm.MatchString(string(d.Digest)) })
	return index
}

// lock excludes other processes until unlock.
func (c *cache) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(c.dir, "blobs", "sha256"), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("another process has locked it: %w", context.Cause(ctx)), f.Close())
		}
	}
}
