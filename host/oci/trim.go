// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// trim removes entries from the index, the least recently used one first, until the needed blobs
// are within the limit. It returns the files that are then unused. keep stays.
func (c *cache) trim(index *ocispec.Index, keep digest.Digest) (remove []string) {
	size, used, remove := c.files()
	needs := map[digest.Digest][]digest.Digest{} // blobs of each manifest
	for _, d := range index.Manifests {
		list := c.needs(d)
		if of := proofOf(d); list != nil && of != "" {
			list = append(list, of)
		}
		needs[d.Digest] = append(needs[d.Digest], list...)
	}
	byUse := make([]digest.Digest, 0, len(needs))
	for d := range needs {
		byUse = append(byUse, d)
	}
	slices.SortFunc(byUse, func(a, b digest.Digest) int { return used[a].Compare(used[b]) })
	needed, total := sum(needs, size)
	for _, d := range byUse {
		if total <= c.most {
			break
		}
		if d != keep {
			delete(needs, d)
			needed, total = sum(needs, size)
		}
	}
	for d := range size {
		if !needed[d] {
			remove = append(remove, c.blobPath(d))
		}
	}
	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool { return needs[d.Digest] == nil })
	return remove
}

// files returns the sizes of all blobs, the times of their last use, and the files that processes
// left when they ended during a write: the lock excludes other writers.
func (c *cache) files() (size map[digest.Digest]int64, used map[digest.Digest]time.Time, left []string) {
	size, used = map[digest.Digest]int64{}, map[digest.Digest]time.Time{}
	blobs := filepath.Join(c.dir, "blobs", "sha256")
	for _, dir := range []string{c.dir, blobs} {
		files, _ := os.ReadDir(dir) // an unreadable directory counts as empty
		for _, f := range files {
			info, err := f.Info()
			switch {
			case err != nil:
			case strings.HasPrefix(f.Name(), atomicfile.Prefix):
				left = append(left, filepath.Join(dir, f.Name()))
			case dir == blobs:
				d := digest.NewDigestFromEncoded(digest.SHA256, f.Name())
				size[d], used[d] = info.Size(), info.ModTime()
			}
		}
	}
	return size, used, left
}

// sum returns the blobs that any manifest needs, and their total size.
func sum(needs map[digest.Digest][]digest.Digest, size map[digest.Digest]int64) (needed map[digest.Digest]bool, total int64) {
	needed = map[digest.Digest]bool{}
	for _, list := range needs {
		for _, d := range list {
			if !needed[d] {
				needed[d], total = true, total+size[d]
			}
		}
	}
	return needed, total
}

// needs returns the blobs of a manifest in the cache, including the manifest. It does not count as
// a use.
func (c *cache) needs(d ocispec.Descriptor) []digest.Digest {
	list := []digest.Digest{d.Digest}
	content := c.read(d.Digest, maxManifest)
	if content == nil {
		return nil
	}
	m, err := readManifest(d.MediaType, content, 1<<62)
	switch {
	case err != nil:
		return nil
	case m.index != nil:
		return append(list, c.needs(*m.index)...)
	}
	return append(list, m.layer.Digest)
}
