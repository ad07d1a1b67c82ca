// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// proven returns a module's digest, and a proof that two keys have signed it, with
// signatures of others and of other things among the candidates.
func proven(t testing.TB, index bool) (module string, p *Proof, signers []string) {
	t.Helper()
	keys := testKeys(t)
	module = sumOf([]byte("module"))
	chain := [][]byte{fmt.Appendf(nil, `{"schemaVersion":2,"layers":[{"mediaType":"application/wasm","digest":%q,"size":6}]}`, module)}
	if index {
		chain = slices.Insert(chain, 0, fmt.Appendf(nil, `{"manifests":[{"digest":%q},{"digest":%q}]}`, digestB, sumOf(chain[0])))
	}
	top := sumOf(chain[0])
	candidates := []Candidate{sign(t, false, digestB, keys[0]), sign(t, false, top, keys[0]), sign(t, true, top, keys[1]), sign(t, true, top, keys[2]), {From: "junk"}}
	policy := Policy{Keys: []*Key{&keys[0].Key, &keys[1].Key}}
	p, signers, err := policy.Prove(t.Context(), top, chain, candidates)
	if err != nil || len(signers) != 2 {
		t.Fatal(signers, err)
	}
	if len(p.Keys) != 2 || len(p.Candidates) != 2 {
		t.Errorf("the proof has %d keys and %d candidates", len(p.Keys), len(p.Candidates))
	}
	return module, p, signers
}

// TestProof_ShowsTheSigners: a verifier needs only the module and the proof, which is valid for no
// other module.
func TestProof_ShowsTheSigners(t *testing.T) {
	for _, index := range []bool{false, true} {
		module, p, signers := proven(t, index)
		content, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if p, err = ParseProof(content); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Signers(module); err != nil || !slices.Equal(got, signers) {
			t.Errorf("%v, %v, want %v", got, err, signers)
		}
		for _, other := range []string{digestA, "", sumOf(p.Manifests[0])} {
			if got, err := p.Signers(other); err == nil {
				t.Errorf("%q is signed by %v", other, got)
			}
		}
	}
}

// TestProof_EachLinkIsChecked: a proof with a part of another one shows nothing.
func TestProof_EachLinkIsChecked(t *testing.T) {
	module := sumOf([]byte("module"))
	bad := map[string]func(*Proof){
		"no manifest":       func(p *Proof) { p.Manifests = nil },
		"three manifests":   func(p *Proof) { p.Manifests = append(p.Manifests, p.Manifests...) },
		"without its index": func(p *Proof) { p.Manifests = p.Manifests[1:] },
		"another index":     func(p *Proof) { p.Manifests[0] = []byte(`{"manifests":[{"digest":"` + digestB + `"}]}`) },
		"another manifest":  func(p *Proof) { p.Manifests[1] = append(p.Manifests[1], ' ') },
		"index with layers": func(p *Proof) {
			p.Manifests[0] = []byte(`{"layers":[{}],"manifests":[{"digest":"` + sumOf(p.Manifests[1]) + `"}]}`)
		},
		"index that is signed": func(p *Proof) { p.Manifests[0] = append(p.Manifests[0], ' ') },
		"no JSON":              func(p *Proof) { p.Manifests[1] = []byte("x") },
		"no keys":              func(p *Proof) { p.Keys = nil },
		"no key":               func(p *Proof) { p.Keys[0] = "x" },
		"many keys":            func(p *Proof) { p.Keys = slices.Repeat(p.Keys, MaxKeys) },
		"no candidates":        func(p *Proof) { p.Candidates = nil },
	}
	for name, change := range bad {
		_, p, _ := proven(t, true)
		change(p)
		if got, err := p.Signers(module); err == nil {
			t.Errorf("%s: signed by %v", name, got)
		}
	}
	two := []byte(`{"layers":[{"digest":"` + module + `"},{"digest":"` + module + `"}]}`)
	key := testKeys(t)[0]
	p := Proof{Manifests: [][]byte{two}, Keys: []string{string(key.pem())}, Candidates: []Candidate{sign(t, false, sumOf(two), key)}}
	if got, err := p.Signers(module); err == nil {
		t.Errorf("two layers: signed by %v", got)
	}
}

// TestProof_IsBounded: before it is decoded.
func TestProof_IsBounded(t *testing.T) {
	if _, err := ParseProof([]byte(strings.Repeat(" ", MaxProof+1))); err == nil || !strings.Contains(err.Error(), "more than the limit") {
		t.Error(err)
	}
	p := Proof{Manifests: [][]byte{make([]byte, MaxProof)}}
	if _, err := p.Marshal(); err == nil {
		t.Error("what nobody reads was written")
	}
}

// FuzzProof: no proof makes its reader fail, or shows that another key has signed
// than those that have.
func FuzzProof(f *testing.F) {
	module, p, signers := proven(f, true)
	content, err := p.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"manifests":["e30="],"keys":[""],"candidates":[{}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := ParseProof(content)
		if err != nil {
			return
		}
		got, err := p.Signers(module)
		for _, signer := range got {
			if err == nil && !slices.Contains(signers, signer) {
				t.Errorf("%s has signed, according to %s", signer, content)
			}
		}
	})
}
