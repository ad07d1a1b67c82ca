// SPDX-License-Identifier: Apache-2.0

// Package keyless verifies signatures that were made with an identity instead of a key: the bundles
// of sigstore, whose short-lived certificate a service has issued and whose signature is in a
// transparency log. It does not use the network: a file has the trusted services. It is a Go module
// of its own, because sigstore-go is large.
package keyless

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/wasmctl/wasmctl/host/oci/signature"
)

// Options select the accepted signatures.
type Options struct {
	// TrustedRoot is the content of sigstore's file trusted_root.json.
	TrustedRoot []byte
	// Identity is the subject of the certificate, for example a mail address or the URL of a
	// workflow. Issuer is the URL of the service that authenticated it. In both, * matches any
	// text.
	Identity, Issuer string
}

// Verifier implements signature.Keyless. It is safe for concurrent use.
type Verifier struct {
	verifier *verify.Verifier
	identity verify.CertificateIdentity
	id       string
}

var _ signature.Keyless = (*Verifier)(nil)

// New returns a Verifier. The error names missing options.
func New(o Options) (*Verifier, error) {
	trusted, err := root.NewTrustedRootFromJSON(o.TrustedRoot)
	if err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	if len(trusted.FulcioCertificateAuthorities()) == 0 || len(trusted.RekorLogs()) == 0 {
		return nil, errors.New("trusted root: it names no certificate authority, or no transparency log: nothing could be verified")
	}
	demands := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	if len(trusted.CTLogs()) > 0 {
		demands = append(demands, verify.WithSignedCertificateTimestamps(1))
	}
	v := &Verifier{id: idOf(o)}
	if v.verifier, err = verify.NewVerifier(trusted, demands...); err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	if v.identity, err = identity(o); err != nil {
		return nil, err
	}
	return v, nil
}

// identity returns the required properties of certificates.
func identity(o Options) (verify.CertificateIdentity, error) {
	if strings.Trim(o.Identity, "*") == "" || strings.Trim(o.Issuer, "*") == "" {
		return verify.CertificateIdentity{}, errors.New("identity and issuer: both are needed, as anybody can get a certificate for some identity")
	}
	return verify.NewShortCertificateIdentity("", pattern(o.Issuer), "", pattern(o.Identity))
}

// pattern returns the regular expression for a complete text in which * matches any text.
func pattern(s string) string {
	return `\A(?s:` + strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, `.*`) + `)\z`
}

// idOf returns an ID of the options.
func idOf(o Options) string {
	sum := sha256.New()
	for _, part := range []string{string(o.TrustedRoot), o.Identity, o.Issuer} {
		_, _ = fmt.Fprintf(sum, "%d %s,", len(part), part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// Policy admits the signatures of the identity.
func (v *Verifier) Policy() signature.Policy { return signature.Policy{Keyless: v, KeylessID: v.id} }

// VerifyKeyless implements signature.Keyless. The signer is the identity and the issuer, separated
// by a space.
func (v *Verifier) VerifyKeyless(_ context.Context, digest string, content []byte) (signer string, err error) {
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return "", fmt.Errorf("digest %.80q: %w", digest, err)
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(content); err != nil {
		return "", fmt.Errorf("%w: %w", signature.ErrUnreadable, err)
	}
	result, err := v.verifier.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest("sha256", sum), verify.WithCertificateIdentity(v.identity)))
	if err != nil {
		return "", fmt.Errorf("keyless: %w", err)
	}
	if got := result.Statement.GetPredicateType(); got != signature.PredicateType { // it is "" for the signature of a file
		return "", fmt.Errorf("%w: attestation of %.80q, which is no signature; want %s", signature.ErrUnreadable, got, signature.PredicateType)
	}
	return signerOf(result.Signature.Certificate), nil
}

func signerOf(c *certificate.Summary) string { return c.SubjectAlternativeName + " " + c.Issuer }
