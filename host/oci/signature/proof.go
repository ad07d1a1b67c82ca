// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// MaxProof is the maximum size of a Proof, in bytes.
const MaxProof = 256 << 10

// Proof proves the signers of a module without access to the registry and the keys. It has each
// link between the module's digest and the signatures, and each is verified. A key is identified by
// its fingerprint.
type Proof struct {
	// Manifests has the signed manifest and, if that is an index, the module's.
	Manifests [][]byte `json:"manifests"`
	// Keys are public keys in PEM.
	Keys       []string    `json:"keys"`
	Candidates []Candidate `json:"candidates"`
}

// Prove returns the signers like Verify, and the proof of the valid signatures with keys. The proof
// is nil if there are none.
func (p *Policy) Prove(ctx context.Context, digest string, manifests [][]byte, candidates []Candidate) (*Proof, []string, error) {
	signers, err := p.Verify(ctx, digest, candidates)
	if err != nil {
		return nil, nil, err
	}
	proof := &Proof{Manifests: manifests}
	for _, k := range p.Keys {
		if slices.Contains(signers, k.Fingerprint()) {
			proof.Keys = append(proof.Keys, string(k.pem()))
		}
	}
	byKey := Policy{Keys: p.Keys}
	for i := range candidates[:min(len(candidates), MaxCandidates)] {
		if _, err := byKey.verify(ctx, digest, &candidates[i]); err == nil {
			proof.Candidates = append(proof.Candidates, candidates[i])
		}
	}
	if len(proof.Candidates) == 0 {
		proof = nil
	}
	return proof, signers, nil
}

// ParseProof reads a proof. Signers verifies it.
func ParseProof(content []byte) (*Proof, error) {
	if len(content) > MaxProof {
		return nil, fmt.Errorf("proof of a signature: %d bytes are more than the limit of %d", len(content), MaxProof)
	}
	var p Proof
	if err := strictjson.Unmarshal(content, &p); err != nil {
		return nil, fmt.Errorf("proof of a signature: %w", err)
	}
	return &p, nil
}

// Marshal returns the proof in the form that ParseProof reads.
func (p *Proof) Marshal() ([]byte, error) {
	content, err := json.Marshal(p)
	if len(content) > MaxProof {
		return nil, fmt.Errorf("proof of a signature: %d bytes are more than the limit of %d", len(content), MaxProof)
	}
	return content, err
}

// Signers returns the fingerprints of the keys that have signed the module with a digest, sorted.
// It returns an error if the proof shows none.
func (p *Proof) Signers(module string) ([]string, error) {
	if len(p.Keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys: want at most %d", len(p.Keys), MaxKeys)
	}
	if err := p.leadsTo(module); err != nil {
		return nil, fmt.Errorf("proof of a signature: %w", err)
	}
	var policy Policy
	for _, text := range p.Keys {
		key, err := ParsePublicKey([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("proof of a signature: key: %w", err)
		}
		policy.Keys = append(policy.Keys, key)
	}
	return policy.Verify(context.Background(), digestOfBytes(p.Manifests[0]), p.Candidates)
}

// leadsTo follows the chain from the signed manifest to the module.
func (p *Proof) leadsTo(module string) error {
	type descriptor struct {
		Digest string `json:"digest"`
	}
	if n := len(p.Manifests); n != 1 && n != 2 {
		return fmt.Errorf("it has %d manifests; want one, and its index if it has one", n)
	}
	for i, content := range p.Manifests {
		var m struct {
			Manifests []descriptor `json:"manifests"`
			Layers    []descriptor `json:"layers"`
		}
		if err := strictjson.Unmarshal(content, &m); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		if len(m.Layers) > 0 && len(m.Manifests) > 0 {
			return errors.New("a manifest is ambiguous: it has layers and is an index")
		}
		if i < len(p.Manifests)-1 {
			if next := (descriptor{digestOfBytes(p.Manifests[i+1])}); !slices.Contains(m.Manifests, next) {
				return fmt.Errorf("the index does not have the manifest %s", next.Digest)
			}
			continue
		}
		if len(m.Layers) != 1 || m.Layers[0].Digest != module {
			return fmt.Errorf("the manifest is not that of module %s", module)
		}
	}
	return nil
}
