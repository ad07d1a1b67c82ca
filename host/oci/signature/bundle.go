// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// BundleType is the media type of a sigstore bundle, and the artifact type of the manifest that
// refers to the signed one: cosign's format since version 3.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Annotations of that manifest.
const (
	AnnotationContent   = "dev.sigstore.bundle.content"
	AnnotationPredicate = "dev.sigstore.bundle.predicateType"
	ContentDSSE         = "dsse-envelope"
)

// PredicateType is the predicate type of the statement in a bundle: it is a signature, and not an
// attestation of something else.
const PredicateType = "https://sigstore.dev/cosign/sign/v1"

const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
)

// bundle has the fields of a sigstore bundle that are in signatures with a key.
type bundle struct {
	MediaType string   `json:"mediaType"`
	Material  material `json:"verificationMaterial"`
	// Envelope is nil if the bundle signs a file instead of a statement.
	Envelope *envelope `json:"dsseEnvelope"`
}

type material struct {
	PublicKey *publicKey `json:"publicKey,omitempty"`
	// Certificate and Chain belong to keyless signatures.
	Certificate json.RawMessage `json:"certificate,omitempty"`
	Chain       json.RawMessage `json:"x509CertificateChain,omitempty"`
}

type publicKey struct {
	Hint string `json:"hint"`
}

type envelope struct {
	Payload     []byte          `json:"payload"`
	PayloadType string          `json:"payloadType"`
	Signatures  []dsseSignature `json:"signatures"`
}

type dsseSignature struct {
	Sig []byte `json:"sig"`
}

type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     struct{}  `json:"predicate"`
}

type subject struct {
	Digest map[string]string `json:"digest"`
}

// SignBundle returns a bundle that signs a manifest's digest.
func SignBundle(digest string, key *PrivateKey) ([]byte, error) {
	hash, err := hashOf(digest)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(statement{
		Type: statementType, Subject: []subject{{map[string]string{"sha256": hash}}}, PredicateType: PredicateType,
	})
	if err != nil {
		return nil, err
	}
	sig, err := key.sign(preAuth(payloadType, payload))
	if err != nil {
		return nil, err
	}
	return json.Marshal(bundle{
		MediaType: BundleType,
		Material:  material{PublicKey: &publicKey{base64.StdEncoding.EncodeToString(key.sum[:])}},
		Envelope:  &envelope{payload, payloadType, []dsseSignature{{sig}}},
	})
}

// hashOf returns the hexadecimal part of a digest.
func hashOf(digest string) (string, error) {
	hash, ok := strings.CutPrefix(digest, "sha256:")
	if b, err := hex.DecodeString(hash); !ok || err != nil || len(b) != 32 || hash != strings.ToLower(hash) {
		return "", fmt.Errorf("digest %.80q: want sha256: and 64 hexadecimal digits in lower case", digest)
	}
	return hash, nil
}

// preAuth returns the bytes that DSSE signs: type and payload with their lengths, so that no part
// of one can be read as part of the other.
func preAuth(kind string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
}

// readBundle returns the signed content of a bundle.
func readBundle(content []byte) (s signed, err error) {
	var b bundle
	if err := strictjson.Unmarshal(content, &b); err != nil {
		return s, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	s.keyless = present(b.Material.Certificate) || present(b.Material.Chain)
	e := b.Envelope
	switch {
	case b.MediaType != BundleType:
		return s, fmt.Errorf("%w: bundle of type %.80q; want %s", ErrUnreadable, b.MediaType, BundleType)
	case s.keyless == (b.Material.PublicKey != nil):
		return s, fmt.Errorf("%w: bundle with neither or both of public key and certificate", ErrUnreadable)
	case e == nil || len(e.Signatures) != 1:
		return s, fmt.Errorf("%w: bundle without a DSSE envelope with one signature", ErrUnreadable)
	case e.PayloadType != payloadType:
		return s, fmt.Errorf("%w: envelope of type %.80q; want %s", ErrUnreadable, e.PayloadType, payloadType)
	}
	if !s.keyless {
		if sum, err := base64.StdEncoding.DecodeString(b.Material.PublicKey.Hint); err == nil && len(sum) == 32 {
			s.hint = "sha256:" + hex.EncodeToString(sum)
		}
	}
	s.message, s.signature = preAuth(e.PayloadType, e.Payload), e.Signatures[0].Sig
	s.claims = func() ([]string, string, error) { return readStatement(e.Payload) }
	return s, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// readStatement returns the digests that a statement is about, and its predicate type.
func readStatement(payload []byte) (digests []string, predicate string, err error) {
	var st struct {
		statement
		Predicate json.RawMessage `json:"predicate"` // not needed here
	}
	if err := strictjson.Unmarshal(payload, &st); err != nil {
		return nil, "", err
	}
	if !slices.Contains([]string{statementType, "https://in-toto.io/Statement/v0.1"}, st.Type) {
		return nil, "", fmt.Errorf("statement of type %.80q; want %s", st.Type, statementType)
	}
	for _, s := range st.Subject {
		if hash := s.Digest["sha256"]; hash != "" {
			digests = append(digests, "sha256:"+hash)
		}
	}
	if len(digests) == 0 {
		return nil, "", errors.New("statement without a sha256 digest")
	}
	return digests, st.PredicateType, nil
}
