// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// The format of cosign before version 3: a manifest under LegacyTag whose layers are payloads of
// LegacyType, each with its signature in an annotation.
const (
	LegacyType            = "application/vnd.dev.cosign.simplesigning.v1+json"
	AnnotationSignature   = "dev.cosignproject.cosign/signature"
	AnnotationCertificate = "dev.sigstore.cosign/certificate"
)

const legacyClaim = "cosign container image signature"

// LegacyTag is the tag of the manifest with the signatures of another one.
func LegacyTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

type simpleSigning struct {
	Critical critical `json:"critical"`
	Optional any      `json:"optional"`
}

type critical struct {
	Identity struct {
		Reference string `json:"docker-reference"`
	} `json:"identity"`
	Image struct {
		Digest string `json:"docker-manifest-digest"`
	} `json:"image"`
	Type string `json:"type"`
}

// SignLegacy returns the payload that signs a manifest's digest, and the annotation with the
// signature. The reference of the repository is only for people. Nothing checks it.
func SignLegacy(digest, reference string, key *PrivateKey) (payload []byte, annotation string, err error) {
	if _, err := hashOf(digest); err != nil {
		return nil, "", err
	}
	var s simpleSigning
	s.Critical.Type, s.Critical.Image.Digest, s.Critical.Identity.Reference = legacyClaim, digest, reference
	if payload, err = json.Marshal(s); err != nil {
		return nil, "", err
	}
	sig, err := key.sign(payload)
	return payload, base64.StdEncoding.EncodeToString(sig), err
}

// readLegacy returns the signed content of a layer.
func readLegacy(c *Candidate) (s signed, err error) {
	if s.signature, err = base64.StdEncoding.DecodeString(c.Signature); err != nil {
		return s, fmt.Errorf("%w: annotation %s: %w", ErrUnreadable, AnnotationSignature, err)
	}
	s.message, s.keyless = c.Payload, c.Certificate
	s.claims = func() ([]string, string, error) {
		var p struct {
			Critical critical `json:"critical"`
		}
		if err := strictjson.Unmarshal(c.Payload, &p); err != nil {
			return nil, "", err
		}
		if p.Critical.Type != legacyClaim {
			return nil, "", fmt.Errorf("payload of type %.80q; want %q", p.Critical.Type, legacyClaim)
		}
		return []string{p.Critical.Image.Digest}, PredicateType, nil
	}
	return s, nil
}
