// SPDX-License-Identifier: Apache-2.0

// Package signature signs digests of manifests with a key, and verifies these signatures, in both
// formats of cosign. It uses no network and no transparency log: a signature is valid if the
// private key of a known public key has made it.
package signature

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits on a registry's input for a verifier.
const (
	// MaxCandidates is the maximum number of signatures of one manifest, and MaxSize is the maximum
	// size of one in bytes.
	MaxCandidates = 32
	MaxSize       = 128 << 10
	// MaxKeys is the maximum number of keys in a Policy.
	MaxKeys = 20
)

// Reasons why a candidate is not valid. ErrUnsigned is the error of Verify as a whole.
var (
	ErrUnsigned   = errors.New("not signed by a key that is trusted")
	ErrKey        = errors.New("signed with another key")
	ErrDigest     = errors.New("signs another digest")
	ErrKeyless    = errors.New("signed without a key (by an identity and a certificate), which is not supported here")
	ErrUnreadable = errors.New("cannot be read")
)

// Candidate is a possible signature of a manifest, as found in a registry.
type Candidate struct {
	// From is the place where it was found, for errors.
	From string `json:"from"`
	// Bundle is a sigstore bundle. It is nil for a layer of the older format, with the Payload and
	// the annotations Signature and Certificate.
	Bundle      []byte `json:"bundle,omitempty"`
	Payload     []byte `json:"payload,omitempty"`
	Signature   string `json:"signature,omitempty"`
	Certificate bool   `json:"certificate,omitempty"`
	// Err, if not nil, is the reason why it cannot be read.
	Err error `json:"-"`
}

// Keyless verifies bundles that were signed by an identity instead of a key: see package keyless,
// which is a Go module of its own.
type Keyless interface {
	// VerifyKeyless returns the signer of the manifest with a digest. The bundle is untrusted
	// content from the registry.
	VerifyKeyless(ctx context.Context, digest string, bundle []byte) (signer string, err error)
}

// Policy selects the accepted signatures.
type Policy struct {
	Keys    []*Key
	Keyless Keyless // nil for none
	// KeylessID identifies the signatures that Keyless accepts.
	KeylessID string
}

// ID identifies the accepted signatures: two policies with one ID accept the same.
func (p *Policy) ID() string {
	list := p.Fingerprints()
	if p.Keyless != nil {
		list = append(list, "keyless", cmp.Or(p.KeylessID, rand.Text())) // an unknown one equals no other
	}
	return digestOfBytes([]byte(strings.Join(list, "\n")))
}

func digestOfBytes(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fingerprints returns the distinct fingerprints of the keys, sorted.
func (p *Policy) Fingerprints() []string {
	var list []string
	for _, k := range p.Keys {
		list = append(list, k.Fingerprint())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// signed is the signed content of a candidate. Nothing reads Claims before the signature is
// verified.
type signed struct {
	message, signature []byte
	claims             func() (digests []string, predicate string, err error)
	keyless            bool
	hint               string // fingerprint of the key, claimed by the bundle
}

// Verify returns the signers of a manifest with a digest, sorted: fingerprints of keys, and signers
// of Keyless. The error wraps ErrUnsigned, lists the candidates with the reasons why they are not
// valid, and wraps these.
func (p *Policy) Verify(ctx context.Context, digest string, candidates []Candidate) (signers []string, err error) {
	if _, err := hashOf(digest); err != nil {
		return nil, err
	}
	if len(p.Keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys: want at most %d", len(p.Keys), MaxKeys)
	}
	var reasons []error
	for i := range candidates[:min(len(candidates), MaxCandidates)] {
		signer, err := p.verify(ctx, digest, &candidates[i])
		if err != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", candidates[i].From, err))
			continue
		}
		signers = append(signers, signer)
	}
	if len(signers) > 0 {
		slices.Sort(signers)
		return slices.Compact(signers), nil
	}
	return nil, unsigned(digest, reasons, len(candidates))
}

// verify returns the signer of one candidate.
func (p *Policy) verify(ctx context.Context, digest string, c *Candidate) (signer string, err error) {
	signer, predicate, err := p.check(ctx, digest, c)
	if err == nil && predicate != PredicateType {
		return "", fmt.Errorf("%w: attestation of %.80q, which is no signature; want %s", ErrUnreadable, predicate, PredicateType)
	}
	return signer, err
}

// check returns the signer of one candidate and the predicate type of its statement.
func (p *Policy) check(ctx context.Context, digest string, c *Candidate) (signer, predicate string, err error) {
	if n := len(c.Bundle) + len(c.Payload) + len(c.Signature); n > MaxSize {
		return "", "", fmt.Errorf("%w: %d bytes are more than the limit of %d", ErrUnreadable, n, MaxSize)
	}
	var s signed
	if c.Err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrUnreadable, c.Err)
	}
	if c.Bundle != nil {
		s, err = readBundle(c.Bundle)
	} else {
		s, err = readLegacy(c)
	}
	switch {
	case err != nil:
		return "", "", err
	case s.keyless && (p.Keyless == nil || c.Bundle == nil):
		return "", "", ErrKeyless
	case s.keyless:
		signer, err = p.Keyless.VerifyKeyless(ctx, digest, c.Bundle)
		return signer, PredicateType, err
	}
	i := slices.IndexFunc(p.Keys, func(k *Key) bool { return k.verifies(s.message, s.signature) })
	if i < 0 {
		return "", "", wrongKey(s.hint)
	}
	digests, predicate, err := s.claims()
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if !slices.Contains(digests, digest) {
		return "", "", fmt.Errorf("%w: %.80q", ErrDigest, digests[0])
	}
	return p.Keys[i].Fingerprint(), predicate, nil
}

// Attestation is a signed statement about a manifest that is no signature, such as its SBOM or its
// provenance.
type Attestation struct {
	// Signer is the fingerprint of the key.
	Signer string `json:"signer"`
	// Type is the predicate type of the statement.
	Type string `json:"type"`
}

// Attestations returns the attestations of a manifest that a key of the policy has signed.
func (p *Policy) Attestations(ctx context.Context, digest string, candidates []Candidate) (list []Attestation) {
	byKey := Policy{Keys: p.Keys}
	for i := range candidates[:min(len(candidates), MaxCandidates)] {
		if signer, predicate, err := byKey.check(ctx, digest, &candidates[i]); err == nil && predicate != PredicateType {
			list = append(list, Attestation{signer, predicate})
		}
	}
	return list
}

func wrongKey(hint string) error {
	if hint == "" {
		return ErrKey
	}
	return fmt.Errorf("%w: it names %s", ErrKey, hint)
}

// maxReasons is the maximum number of reasons in an error.
const maxReasons = 5

func unsigned(digest string, reasons []error, found int) error {
	if found == 0 {
		return fmt.Errorf("manifest[%s]: %w: no signature of it was found; sign it with wasmctl sign", digest, ErrUnsigned)
	}
	more := ""
	if n := found - maxReasons; n > 0 {
		reasons, more = reasons[:maxReasons], fmt.Sprintf("; and %d more", n)
	}
	args := []any{digest, ErrUnsigned, found}
	for _, err := range reasons {
		args = append(args, err)
	}
	return fmt.Errorf("manifest[%s]: %w: found %d: "+strings.Join(slices.Repeat([]string{"%w"}, len(reasons)), "; ")+"%s", append(args, more)...)
}
