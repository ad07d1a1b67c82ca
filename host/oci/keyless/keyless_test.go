// SPDX-License-Identifier: Apache-2.0

package keyless

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/testing/data"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/wasmctl/wasmctl/host/oci/signature"
)

const (
	identityA = "https://github.com/acme/greeter/.github/workflows/release.yml@refs/tags/v1"
	issuerA   = "https://token.actions.githubusercontent.com"
	digestA   = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	digestB   = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
)

// services are a certificate authority, a transparency log and a time stamping
// authority of a test.
func services(t *testing.T) *ca.VirtualSigstore {
	t.Helper()
	s, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trusting returns the file that names them; with ct, a log of certificates too.
func trusting(t *testing.T, s *ca.VirtualSigstore, ct bool) []byte {
	t.Helper()
	var logs map[string]*root.TransparencyLog
	if ct {
		logs = s.CTLogs()
	}
	rekor := s.RekorLogs()
	for id, log := range rekor {
		log.ID, _ = hex.DecodeString(id) // it has the text, where a file has the bytes
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.FulcioCertificateAuthorities(), logs, s.TimestampingAuthorities(), rekor)
	if err != nil {
		t.Fatal(err)
	}
	content, err := trusted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// statement states that a manifest is signed, or has another predicate.
func statement(t *testing.T, digest, predicate string) []byte {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": map[string]any{},
		"subject": []any{map[string]any{"digest": map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// sign returns a bundle, as cosign writes it.
func sign(t *testing.T, s *ca.VirtualSigstore, identity, issuer string, payload []byte) []byte {
	t.Helper()
	e, err := s.AttestHashedRekordV2(identity, issuer, payload)
	if err != nil {
		t.Fatal(err)
	}
	return marshal(t, e, true)
}

// marshal writes a bundle; without logged, without the entry of the log.
func marshal(t *testing.T, e *ca.TestEntity, logged bool) []byte {
	t.Helper()
	cert, err := e.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := e.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := e.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	times, err := e.Timestamps()
	if err != nil {
		t.Fatal(err)
	}
	b := &protobundle.Bundle{
		MediaType: signature.BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: cert.Certificate().Raw}},
			TimestampVerificationData: &protobundle.TimestampVerificationData{},
		},
	}
	for _, at := range times {
		b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps = append(b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps,
			&protocommon.RFC3161SignedTimestamp{SignedTimestamp: at})
	}
	for _, entry := range entries {
		if logged {
			b.VerificationMaterial.TlogEntries = append(b.VerificationMaterial.TlogEntries, entry.TransparencyLogEntry())
		}
	}
	raw := signed.EnvelopeContent().RawEnvelope()
	payload, err := raw.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: payload, PayloadType: raw.PayloadType, Signatures: []*protodsse.Signature{{Sig: signed.Signature()}},
	}}
	content, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func verifier(t *testing.T, trusted []byte, identity, issuer string) *Verifier {
	t.Helper()
	v, err := New(Options{TrustedRoot: trusted, Identity: identity, Issuer: issuer})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVerify_OnlyWhatTheIdentityHasSigned: a signature counts for its digest, its
// identity and its issuer, and if the services that are trusted have witnessed it.
func TestVerify_OnlyWhatTheIdentityHasSigned(t *testing.T) {
	s, others := services(t), services(t)
	trusted := trusting(t, s, false)
	good := sign(t, s, identityA, issuerA, statement(t, digestA, signature.PredicateType))
	e, err := s.AttestHashedRekordV2(identityA, issuerA, statement(t, digestA, signature.PredicateType))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		verifier *Verifier
		digest   string
		bundle   []byte
		want     string // in the error; "" for none
	}{
		"exact":                  {verifier(t, trusted, identityA, issuerA), digestA, good, ""},
		"pattern":                {verifier(t, trusted, "https://github.com/acme/*/release.yml@refs/tags/*", "https://*"), digestA, good, ""},
		"another digest":         {verifier(t, trusted, identityA, issuerA), digestB, good, "digest"},
		"another identity":       {verifier(t, trusted, "https://github.com/other/*", issuerA), digestA, good, "certificate identity"},
		"the begin of it":        {verifier(t, trusted, "https://github.com/acme/greeter", issuerA), digestA, good, "certificate identity"},
		"the end of it":          {verifier(t, trusted, "release.yml@refs/tags/v1", issuerA), digestA, good, "certificate identity"},
		"a dot is a dot":         {verifier(t, trusted, strings.Replace(identityA, "g", ".", 1), issuerA), digestA, good, "certificate identity"},
		"another issuer":         {verifier(t, trusted, identityA, "https://accounts.example.com"), digestA, good, "certificate identity"},
		"other services":         {verifier(t, trusting(t, others, false), identityA, issuerA), digestA, good, "keyless: "},
		"not in the log":         {verifier(t, trusted, identityA, issuerA), digestA, marshal(t, e, false), "keyless: "},
		"no log of certificates": {verifier(t, trusting(t, s, true), identityA, issuerA), digestA, good, "keyless: "},
		"an attestation":         {verifier(t, trusted, identityA, issuerA), digestA, sign(t, s, identityA, issuerA, statement(t, digestA, "https://slsa.dev/provenance/v1")), "which is no signature"},
		"not a bundle":           {verifier(t, trusted, identityA, issuerA), digestA, []byte("{}"), signature.ErrUnreadable.Error()},
	} {
		signer, err := c.verifier.VerifyKeyless(t.Context(), c.digest, c.bundle)
		switch {
		case c.want == "" && (err != nil || signer != identityA+" "+issuerA):
			t.Errorf("%s: %q, %v", name, signer, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %q, %v, want %s", name, signer, err, c.want)
		}
		p := c.verifier.Policy()
		signers, err := p.Verify(t.Context(), c.digest, []signature.Candidate{{From: "test", Bundle: c.bundle}})
		if (c.want == "") != (err == nil) || err != nil && !errors.Is(err, signature.ErrUnsigned) || err == nil && signers[0] != signer {
			t.Errorf("%s: policy: %q, %v", name, signers, err)
		}
	}
}

// TestVerify_MixedBundles: of two good bundles, no mixture of their parts makes the
// one's identity sign the other's digest.
func TestVerify_MixedBundles(t *testing.T) {
	const other = "https://github.com/other/x"
	s := services(t)
	trusted := trusting(t, s, false)
	ours, theirs := verifier(t, trusted, identityA, issuerA), verifier(t, trusted, other, issuerA)
	var a, b any
	for content, into := range map[string]*any{
		string(sign(t, s, identityA, issuerA, statement(t, digestA, signature.PredicateType))): &a,
		string(sign(t, s, other, issuerA, statement(t, digestB, signature.PredicateType))):     &b,
	} {
		if err := json.Unmarshal([]byte(content), into); err != nil {
			t.Fatal(err)
		}
	}
	choices := differences(a, b)
	if n := len(choices); n < 5 || n > 12 {
		t.Fatalf("%d parts differ", n)
	}
	for mix := range 1 << len(choices) {
		for i, choose := range choices {
			choose(mix>>i&1 == 1)
		}
		content, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		verifies := func(v *Verifier, digest string) bool {
			_, err := v.VerifyKeyless(t.Context(), digest, content)
			return err == nil
		}
		if verifies(ours, digestB) || verifies(theirs, digestA) {
			t.Fatalf("mixture %b: %s", mix, content)
		}
		if mix == 0 && !verifies(ours, digestA) || mix == 1<<len(choices)-1 && !verifies(theirs, digestB) {
			t.Fatal("what is not mixed is refused")
		}
	}
}

// differences returns what puts each part of a that differs in b into a: that of b, or
// its own.
func differences(a, b any) (choices []func(second bool)) {
	switch a := a.(type) {
	case map[string]any:
		for k, own := range a {
			other := b.(map[string]any)[k]
			if _, leaf := own.(string); !leaf {
				choices = append(choices, differences(own, other)...)
			} else if own != other {
				choices = append(choices, func(second bool) {
					if a[k] = own; second {
						a[k] = other
					}
				})
			}
		}
	case []any:
		for i := range a {
			choices = append(choices, differences(a[i], b.([]any)[i])...)
		}
	}
	return choices
}

// TestVerify_ThePublicServices: with the file of the public services, a bundle that
// these have witnessed, with its log of certificates, fails for its digest alone.
func TestVerify_ThePublicServices(t *testing.T) {
	trusted, err := data.TrustedRoot(t, "public-good.json").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for want, root := range map[string][]byte{"provided artifact digests does not match": trusted, "not enough verified": trusting(t, services(t), true)} {
		if _, err := verifier(t, root, "https://github.com/*", issuerA).VerifyKeyless(t.Context(), digestA, bundle); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestNew_WantsAllOfIt: what would admit anybody's signature is refused, and two
// verifiers have one ID only if they admit the same.
func TestNew_WantsAllOfIt(t *testing.T) {
	trusted := trusting(t, services(t), false)
	for _, o := range []Options{
		{nil, identityA, issuerA},
		{[]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), identityA, issuerA},
		{trusted, "", issuerA},
		{trusted, identityA, ""},
		{trusted, "*", issuerA},
		{trusted, identityA, "**"},
	} {
		if v, err := New(o); err == nil {
			t.Errorf("%.100q is taken: %v", o, v)
		}
	}
	seen := map[string]Options{}
	for _, o := range []Options{{trusted, "a", "b"}, {trusted, "ab", "b"}, {trusted, "a", "bb"}, {trusting(t, services(t), false), "a", "b"}} {
		v := verifier(t, o.TrustedRoot, o.Identity, o.Issuer)
		p, again := v.Policy(), verifier(t, o.TrustedRoot, o.Identity, o.Issuer).Policy()
		if _, found := seen[p.ID()]; found || p.ID() != again.ID() {
			t.Errorf("%s, %s: the ID is of others too, or another the next time", o.Identity, o.Issuer)
		}
		seen[p.ID()] = o
	}
}
