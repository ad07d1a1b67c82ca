// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// kept is a model of a limited cache: digests of manifests in the order of their last use, the
// oldest first, with their repositories.
type kept struct {
	most  int
	order []string
	from  map[string]bool           // by repository and digest
	blobs map[string]map[string]int // sizes, by manifest and blob
}

// pull returns whether the cache has an entry, and makes one.
func (k *kept) pull(repository, manifest string) (hit bool) {
	k.order = append(slices.DeleteFunc(k.order, func(d string) bool { return d == manifest }), manifest)
	if k.from[repository+manifest] {
		return true
	}
	k.from[repository+manifest] = true
	for len(k.order) > 1 && k.total() > k.most {
		for at := range k.from {
			if strings.HasSuffix(at, k.order[0]) {
				delete(k.from, at)
			}
		}
		k.order = k.order[1:]
	}
	return false
}

func (k *kept) total() (n int) {
	seen := map[string]bool{}
	for _, m := range k.order {
		for d, size := range k.blobs[m] {
			if !seen[d] {
				seen[d], n = true, n+size
			}
		}
	}
	return n
}

// manifestSize is how many bytes the registry has.
func manifestSize(t *testing.T, reg *ocitest.Registry, at oci.Ref) int {
	t.Helper()
	resp, err := (&http.Client{Transport: reg.Transport()}).Get("https://" + reg.Host + "/v2/" + at.Repository + "/manifests/" + at.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// TestCache_LeastRecentlyUsedGoesFirst: for random pulls from two repositories, of modules that may
// share a layer, the cache has exactly the hits of a model.
func TestCache_LeastRecentlyUsedGoesFirst(t *testing.T) {
	reg := ocitest.New(t)
	repositories := []string{"a/b", "c/d"}
	var refs []oci.Ref
	blobs := map[string]map[string]int{}
	pulls := client(reg)
	for i := range 12 {
		wasm := module(uint64(i/2), 2000+1500*(i/2))
		for _, repository := range repositories {
			r := ref(t, reg, fmt.Sprintf("%s:%d", repository, i))
			at, err := pulls.Push(t.Context(), r, wasm, oci.PushOptions{Image: i%2 == 1}) // the same layer in two manifests
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, at)
			a, err := pulls.Pull(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			blobs[at.Digest] = map[string]int{at.Digest: manifestSize(t, reg, at), a.Layer: len(wasm)}
		}
	}
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		most := 10_000 + rnd.IntN(30_000)
		k := &kept{most: most, from: map[string]bool{}, blobs: blobs}
		dir := t.TempDir()
		for step := range 150 {
			at := refs[rnd.IntN(len(refs))]
			if rnd.IntN(2) == 0 {
				at = refs[rnd.IntN(6)] // some are used more often
			}
			c := client(reg, func(o *oci.Options) { o.CacheDir, o.CacheSize = dir, int64(most) })
			a, err := c.Pull(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			if want := k.pull(at.Repository, at.Digest); a.Cached != want {
				t.Fatalf("seed %d, %d bytes, step %d: %s: cached %v, want %v", seed, most, step, at, a.Cached, want)
			}
		}
	}
}

// TestCache_RemovesWhatAKilledProcessLeft: files that were never renamed, of blobs and of the
// index, are removed when the next module is stored.
func TestCache_RemovesWhatAKilledProcessLeft(t *testing.T) {
	reg := ocitest.New(t)
	dir := t.TempDir()
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{dir, blobs} {
		if err := os.WriteFile(filepath.Join(in, ".new-1"), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 1000))
	if _, err := client(reg, func(o *oci.Options) { o.CacheDir = dir }).Pull(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{dir, blobs} {
		if left, err := filepath.Glob(filepath.Join(in, ".new-*")); err != nil || left != nil {
			t.Errorf("%v, %v", left, err)
		}
	}
}
