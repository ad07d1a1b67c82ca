// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/host/oci/signature"
)

func newKey(t testing.TB) *signature.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signedBy(keys ...*signature.PrivateKey) func(*oci.Options) {
	return func(o *oci.Options) {
		var p signature.Policy
		for _, k := range keys {
			p.Keys = append(p.Keys, &k.Key)
		}
		o.Require(p)
	}
}

// signers are those that an artifact's own proof shows.
func signers(t testing.TB, a *oci.Artifact) []string {
	t.Helper()
	proof, err := signature.ParseProof(a.Proof)
	if err != nil {
		t.Fatal(err)
	}
	list, err := proof.Signers(string(digest.FromBytes(a.Wasm)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// without is a registry that does not have the API of referrers.
var without = ocitest.On(http.MethodGet, "/referrers/", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { http.NotFound(w, nil) })

// A client that trusts one of the keys can pull a signed module, in each format and from each
// registry, and the proof has the key. Signatures add up. Other modules are refused before any of
// their content is read.
func TestSign_IsWhatAPolicyAdmits(t *testing.T) {
	a, b, c := newKey(t), newKey(t), newKey(t)
	for name, layers := range map[string][]ocitest.Layer{"api": nil, "tag": {without}} {
		for _, legacy := range []bool{false, true} {
			reg := ocitest.New(t, layers...)
			r := ref(t, reg, "a/b:1")
			pushed := push(t, client(reg), r, module(1, 1000))
			refused := func(why string, c *oci.Client) {
				t.Helper()
				reg.Requests()
				if _, err := c.Pull(t.Context(), r); !errors.Is(err, signature.ErrUnsigned) || !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), why) {
					t.Errorf("%s, legacy %v: %v, want %s", name, legacy, err, why)
				}
				layer := digest.FromBytes(module(1, 1000)).String()
				if slices.ContainsFunc(reg.Requests(), func(req string) bool { return strings.Contains(req, layer) }) {
					t.Errorf("%s, legacy %v: the module was read", name, legacy)
				}
			}
			refused("no signature of it was found", client(reg, signedBy(a)))
			for _, k := range []*signature.PrivateKey{a, b} {
				at, err := client(reg).Sign(t.Context(), r, k, legacy)
				if err != nil || at != pushed {
					t.Fatalf("%s, legacy %v: %v, %v", name, legacy, at, err)
				}
			}
			refused("found 2: ", client(reg, signedBy(c)))
			got, err := client(reg, signedBy(c, b, a)).Pull(t.Context(), r)
			if err != nil {
				t.Fatalf("%s, legacy %v: %v", name, legacy, err)
			}
			want := []string{a.Fingerprint(), b.Fingerprint()}
			slices.Sort(want)
			if list := signers(t, got); !slices.Equal(list, want) {
				t.Errorf("%s, legacy %v: %v", name, legacy, list)
			}
			push(t, client(reg), r, module(2, 1000))
			refused("no signature of it was found", client(reg, signedBy(a)))
		}
	}
}

// A signature of another manifest counts for that one only, whatever it is attached
// to: a module that was signed once does not make another one signed.
func TestSign_OfAnotherManifestDoesNotCount(t *testing.T) {
	key := newKey(t)
	reg := ocitest.New(t)
	c := client(reg)
	good, bad := push(t, c, ref(t, reg, "a/b:1"), module(1, 100)), push(t, c, ref(t, reg, "a/b:2"), module(2, 100))
	bundle, err := signature.SignBundle(good.Digest, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Attach(t.Context(), bad, oci.Attachment{Type: signature.BundleType, Blobs: []oci.Blob{{MediaType: signature.BundleType, Content: bundle}}}); err != nil {
		t.Fatal(err)
	}
	_, err = client(reg, signedBy(key)).Pull(t.Context(), bad)
	if !errors.Is(err, signature.ErrDigest) || !strings.Contains(err.Error(), good.Digest) || !strings.Contains(err.Error(), "referrer sha256:") {
		t.Error(err)
	}
}

// What one policy has admitted, another one has not; and the same one has its proof
// from the cache, without the registry.
func TestSign_TheCacheIsOfThePolicy(t *testing.T) {
	a, b := newKey(t), newKey(t)
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	if _, err := client(reg).Sign(t.Context(), at, a, false); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cache := func(o *oci.Options) { o.CacheDir, o.CacheKey = dir, []byte("k") }
	if _, err := client(reg, cache).Pull(t.Context(), at); err != nil { // nothing is required
		t.Fatal(err)
	}
	if got, err := client(reg, cache, signedBy(a)).Pull(t.Context(), at); err != nil || got.Cached {
		t.Errorf("what was not verified is admitted: %v", err)
	}
	reg.Requests()
	got, err := client(reg, cache, signedBy(a)).Pull(t.Context(), at)
	if err != nil || !got.Cached || len(reg.Requests()) > 0 || !slices.Equal(signers(t, got), []string{a.Fingerprint()}) {
		t.Errorf("what was verified is not: %v", err)
	}
	if _, err := client(reg, cache, signedBy(b)).Pull(t.Context(), at); !errors.Is(err, signature.ErrKey) {
		t.Errorf("what another policy has admitted is: %v", err)
	}
	m := client(reg, cache, signedBy(a)).Module(at)
	if wasm, err := m.Read(t.Context()); err != nil || !bytes.Equal(wasm, module(1, 100)) || m.Proof() == nil {
		t.Error(err)
	}
}

// Who may push cannot keep others from verifying by attaching junk, up to a bound,
// beyond which nothing is read.
func TestSign_JunkBesideIt(t *testing.T) {
	key := newKey(t)
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	attach := func(blobs ...oci.Blob) {
		t.Helper()
		if _, err := client(reg).Attach(t.Context(), at, oci.Attachment{Type: signature.BundleType, Blobs: blobs}); err != nil {
			t.Fatal(err)
		}
	}
	huge := func(i int) oci.Blob {
		return oci.Blob{MediaType: signature.BundleType, Content: module(uint64(i), 1<<20+i)}
	}
	attach()
	attach(huge(1))
	attach(oci.Blob{MediaType: signature.BundleType, Content: []byte("{")}, oci.Blob{MediaType: "text/x", Content: []byte("{")})
	_, err := client(reg, signedBy(key)).Pull(t.Context(), at)
	for _, want := range []string{"found 3: ", "more than it may have", "it is not one bundle"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := client(reg).Sign(t.Context(), at, key, false); err != nil {
		t.Fatal(err)
	}
	if _, err := client(reg, signedBy(key)).Pull(t.Context(), at); err != nil {
		t.Error(err)
	}
	for i := range 9 {
		attach(oci.Blob{MediaType: signature.BundleType, Content: module(uint64(i), 1<<20-i)})
	}
	if _, err := client(reg, signedBy(key)).Pull(t.Context(), at); err == nil || !strings.Contains(err.Error(), "have more than 8Mi: remove some") {
		t.Error(err)
	}
}

// An index is signed as a whole: the proof leads from it to the module.
func TestSign_AnIndex(t *testing.T) {
	key := newKey(t)
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	var size int
	if _, err := client(reg, func(o *oci.Options) {
		o.Verify = func(_ context.Context, s *oci.Subject) error { size = len(s.Manifest); return nil }
	}).Pull(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	put(t, reg, "all", indexType, fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d,"platform":{"architecture":"wasm","os":"wasip1"}}]}`,
		indexType, at.Digest, size))
	r := ref(t, reg, "a/b:all")
	if _, err := client(reg).Sign(t.Context(), r, key, false); err != nil {
		t.Fatal(err)
	}
	got, err := client(reg, signedBy(key)).Pull(t.Context(), r)
	if err != nil || !slices.Equal(signers(t, got), []string{key.Fingerprint()}) {
		t.Error(err)
	}
	if _, err := client(reg, signedBy(key)).Pull(t.Context(), at); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("its manifest alone: %v", err)
	}
}
