// Package signature signs digests of manifests with a key, and verifies such
// signatures, in both formats of cosign. It asks no network and no transparency
// log: what counts is that the private key of a known public key has signed.
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

// Bounds of what a registry can make a verifier read.
const (
	// MaxCandidates is how many signatures of one manifest are looked at, and MaxSize
	// how many bytes one may have.
	MaxCandidates = 32
	MaxSize       = 128 << 10
	// MaxKeys is how many keys a Policy may have.
	MaxKeys = 20
)

// Why a candidate does not count. ErrUnsigned is that of Verify as a whole.
var (
	ErrUnsigned   = errors.New("not signed by a key that is trusted")
	ErrKey        = errors.New("signed with another key")
	ErrDigest     = errors.New("signs another digest")
	ErrKeyless    = errors.New("signed without a key (by an identity and a certificate), which is not supported here")
	ErrUnreadable = errors.New("cannot be read")
)

// Candidate is what may be a signature of a manifest, as a registry has it.
type Candidate struct {
	// From says where it was found, for errors.
	From string `json:"from"`
	// Bundle is a sigstore bundle; nil for a layer of the format before, with the
	// Payload and the annotations Signature and Certificate.
	Bundle      []byte `json:"bundle,omitempty"`
	Payload     []byte `json:"payload,omitempty"`
	Signature   string `json:"signature,omitempty"`
	Certificate bool   `json:"certificate,omitempty"`
	// Err, if not nil, says why what was found cannot be read.
	Err error `json:"-"`
}

// Keyless verifies bundles that were signed by an identity and not by a key: see
// package keyless, which is a Go module of its own.
type Keyless interface {
	// VerifyKeyless returns who signed the manifest with a digest. The bundle is
	// whatever the registry has.
	VerifyKeyless(ctx context.Context, digest string, bundle []byte) (signer string, err error)
}

// Policy says whose signatures count.
type Policy struct {
	Keys    []*Key
	Keyless Keyless // nil for none
	// KeylessID names what Keyless admits.
	KeylessID string
}

// ID names what the policy admits: two with one ID admit the same.
func (p *Policy) ID() string {
	list := p.Fingerprints()
	if p.Keyless != nil {
		list = append(list, "keyless", cmp.Or(p.KeylessID, rand.Text())) // what is not known is not the same
	}
	return digestOfBytes([]byte(strings.Join(list, "\n")))
}

func digestOfBytes(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fingerprints returns those of the keys, sorted, each once.
func (p *Policy) Fingerprints() []string {
	var list []string
	for _, k := range p.Keys {
		list = append(list, k.Fingerprint())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// signed is what a candidate says is signed. Claims reads it, which nothing does
// before the signature was verified.
type signed struct {
	message, signature []byte
	claims             func() (digests []string, err error)
	keyless            bool
	hint               string // fingerprint of the key, as the bundle says
}

// Verify returns the signers of a manifest with a digest, sorted: fingerprints of
// keys, and what Keyless says. The error wraps ErrUnsigned, says what was found
// and why nothing of it counts, and wraps the reasons.
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

// verify returns who signed with one candidate.
func (p *Policy) verify(ctx context.Context, digest string, c *Candidate) (signer string, err error) {
	if n := len(c.Bundle) + len(c.Payload) + len(c.Signature); n > MaxSize {
		return "", fmt.Errorf("%w: %d bytes are more than the limit of %d", ErrUnreadable, n, MaxSize)
	}
	var s signed
	if c.Err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, c.Err)
	}
	if c.Bundle != nil {
		s, err = readBundle(c.Bundle)
	} else {
		s, err = readLegacy(c)
	}
	switch {
	case err != nil:
		return "", err
	case s.keyless && (p.Keyless == nil || c.Bundle == nil):
		return "", ErrKeyless
	case s.keyless:
		return p.Keyless.VerifyKeyless(ctx, digest, c.Bundle)
	}
	i := slices.IndexFunc(p.Keys, func(k *Key) bool { return k.verifies(s.message, s.signature) })
	if i < 0 {
		return "", wrongKey(s.hint)
	}
	digests, err := s.claims()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if !slices.Contains(digests, digest) {
		return "", fmt.Errorf("%w: %.80q", ErrDigest, digests[0])
	}
	return p.Keys[i].Fingerprint(), nil
}

func wrongKey(hint string) error {
	if hint == "" {
		return ErrKey
	}
	return fmt.Errorf("%w: it names %s", ErrKey, hint)
}

// maxReasons is how many reasons an error lists.
const maxReasons = 5

func unsigned(digest string, reasons []error, found int) error {
	if found == 0 {
		return fmt.Errorf("manifest[%s]: %w: the registry has no signature of it; sign it with wasmctl sign", digest, ErrUnsigned)
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
