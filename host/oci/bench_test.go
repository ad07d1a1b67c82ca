// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// BenchmarkRegistry pushes and pulls a module of 3 MB, and reads it from the cache: by
// its tag, for which the registry is asked, and by its digest.
func BenchmarkRegistry(b *testing.B) {
	reg := ocitest.New(b)
	wasm := module(1, 3<<20)
	ref := ref(b, reg, "a/b:1")
	at := push(b, client(reg), ref, wasm)
	dir := b.TempDir()
	cached := func(o *oci.Options) { o.CacheDir = dir }
	b.Run("push", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			wasm[100]++
			wasm[101+i%100]++
			push(b, client(reg), oci.Ref{Host: reg.Host, Repository: "a/c", Tag: "1"}, wasm)
		}
	})
	pull := func(r oci.Ref, change ...func(*oci.Options)) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if _, err := client(reg, change...).Pull(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("pull", pull(ref))
	b.Run("cached-tag", pull(ref, cached))
	b.Run("cached-digest", pull(at, cached))
}
