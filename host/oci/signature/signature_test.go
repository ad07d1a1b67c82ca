// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func digestOf(c string) string { return "sha256:" + strings.Repeat(c, 64/len(c)) }

var digestA, digestB = digestOf("a"), digestOf("0b")

// sign returns a candidate of either format.
func sign(t testing.TB, legacy bool, digest string, key *PrivateKey) Candidate {
	t.Helper()
	if legacy {
		payload, sig, err := SignLegacy(digest, "registry.example/shop/web", key)
		if err != nil {
			t.Fatal(err)
		}
		return Candidate{From: "tag", Payload: payload, Signature: sig}
	}
	b, err := SignBundle(digest, key)
	if err != nil {
		t.Fatal(err)
	}
	return Candidate{From: "referrer", Bundle: b}
}

// attest returns a candidate with a statement of any predicate type.
func attest(t testing.TB, digest, predicate string, key *PrivateKey) Candidate {
	t.Helper()
	payload := fmt.Sprintf(`{"_type":"%s","subject":[{"digest":{"sha256":"%s"}}],"predicateType":"%s","predicate":{}}`, statementType, digest[7:], predicate)
	sig, err := key.sign(preAuth(payloadType, []byte(payload)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(bundle{
		MediaType: BundleType, Material: material{PublicKey: &publicKey{}}, Envelope: &envelope{[]byte(payload), payloadType, []dsseSignature{{sig}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Candidate{From: "referrer", Bundle: b}
}

// TestAttestations_AreThoseOfTheKeys: an attestation counts if a key of the policy has signed it for
// this digest. It is never a signature, and a signature is no attestation.
func TestAttestations_AreThoseOfTheKeys(t *testing.T) {
	const sbom, provenance = "https://spdx.dev/Document", "https://slsa.dev/provenance/v1"
	keys := testKeys(t)
	ours, other := keys[0], keys[1]
	policy := Policy{Keys: []*Key{&ours.Key}}
	damaged := attest(t, digestA, sbom, ours)
	damaged.Bundle = append(damaged.Bundle, 'x')
	candidates := []Candidate{
		sign(t, false, digestA, ours), sign(t, true, digestA, ours), attest(t, digestA, sbom, ours), attest(t, digestA, sbom, other),
		attest(t, digestB, sbom, ours), damaged,
		{Err: errors.New("unreadable")},
		attest(t, digestA, provenance, ours),
	}
	got := policy.Attestations(t.Context(), digestA, candidates)
	if want := []Attestation{{ours.Fingerprint(), sbom}, {ours.Fingerprint(), provenance}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := policy.Verify(t.Context(), digestA, candidates[2:]); !errors.Is(err, ErrUnsigned) {
		t.Errorf("attestations admit a module: %v", err)
	}
	if proof, _, err := policy.Prove(t.Context(), digestA, nil, candidates); err != nil || len(proof.Candidates) != 2 {
		t.Errorf("%v, %v", proof, err)
	}
}

// TestVerify_AgreesWithWhoSigned compares the signers with a list of signatures: only keys that
// signed this digest count, whatever else exists.
func TestVerify_AgreesWithWhoSigned(t *testing.T) {
	keys := testKeys(t)
	digests := []string{digestA, digestB}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var candidates []Candidate
		var want []string
		policy := Policy{}
		for _, k := range keys {
			if r.IntN(2) == 0 {
				policy.Keys = append(policy.Keys, &k.Key)
			}
		}
		for range r.IntN(6) {
			k, d := keys[r.IntN(len(keys))], digests[r.IntN(2)]
			c := sign(t, r.IntN(2) == 0, d, k)
			damaged := r.IntN(4) == 0
			if damaged {
				damage(r, &c)
			}
			candidates = append(candidates, c)
			if !damaged && d == digestA && slices.Contains(policy.Keys, &k.Key) {
				want = append(want, k.Fingerprint())
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got, err := policy.Verify(t.Context(), digestA, candidates)
		if !slices.Equal(got, want) || (err == nil) != (len(want) > 0) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		if err != nil && !errors.Is(err, ErrUnsigned) {
			t.Fatal(err)
		}
	}
}

// damage changes a bit of the signed content or of the signature.
func damage(r *rand.Rand, c *Candidate) {
	if c.Bundle == nil {
		c.Payload = slices.Clone(c.Payload)
		c.Payload[r.IntN(len(c.Payload))] ^= 1 << r.IntN(8)
		return
	}
	var b bundle
	if err := json.Unmarshal(c.Bundle, &b); err != nil {
		panic(err)
	}
	of := []*[]byte{&b.Envelope.Payload, &b.Envelope.Signatures[0].Sig}[r.IntN(2)]
	(*of)[r.IntN(len(*of))] ^= 1 << r.IntN(8)
	c.Bundle, _ = json.Marshal(b)
}

// TestVerify_SaysWhatWasFound: each reason has its error, and its text.
func TestVerify_SaysWhatWasFound(t *testing.T) {
	keys := testKeys(t)
	ours, other := keys[0], keys[1]
	policy := Policy{Keys: []*Key{&ours.Key}}
	edit := func(f func(*bundle)) []byte {
		var b bundle
		if err := json.Unmarshal(sign(t, false, digestA, ours).Bundle, &b); err != nil {
			t.Fatal(err)
		}
		f(&b)
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	signedAs := func(kind, payload string) []byte {
		return edit(func(b *bundle) {
			sig, err := ours.sign(preAuth(kind, []byte(payload)))
			if err != nil {
				t.Fatal(err)
			}
			b.Envelope = &envelope{[]byte(payload), kind, []dsseSignature{{sig}}}
		})
	}
	legacyAs := func(payload string) Candidate {
		sig, err := ours.sign([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		return Candidate{Payload: []byte(payload), Signature: base64.StdEncoding.EncodeToString(sig)}
	}
	const about = `{"_type":"%s","subject":[{"digest":{"sha256":"%s"}}],"predicateType":"%s"}`
	hash := digestA[7:]
	for name, c := range map[string]struct {
		of   Candidate
		want error
		text string
	}{
		"another key":                 {sign(t, false, digestA, other), ErrKey, "it names " + other.Fingerprint()},
		"another key, legacy":         {sign(t, true, digestA, other), ErrKey, "signed with another key"},
		"another digest":              {sign(t, false, digestB, ours), ErrDigest, digestB},
		"another digest, legacy":      {sign(t, true, digestB, ours), ErrDigest, digestB},
		"keyless":                     {Candidate{Bundle: edit(func(b *bundle) { b.Material = material{Certificate: []byte(`{}`)} })}, ErrKeyless, "identity"},
		"keyless, legacy":             {Candidate{Payload: []byte("{}"), Certificate: true}, ErrKeyless, "identity"},
		"both materials":              {Candidate{Bundle: edit(func(b *bundle) { b.Material.Certificate = []byte(`{}`) })}, ErrUnreadable, "both"},
		"no material":                 {Candidate{Bundle: edit(func(b *bundle) { b.Material.PublicKey = nil })}, ErrUnreadable, "neither"},
		"another version":             {Candidate{Bundle: edit(func(b *bundle) { b.MediaType += "x" })}, ErrUnreadable, "want " + BundleType},
		"no envelope":                 {Candidate{Bundle: edit(func(b *bundle) { b.Envelope = nil })}, ErrUnreadable, "DSSE envelope"},
		"no signature in it":          {Candidate{Bundle: edit(func(b *bundle) { b.Envelope.Signatures = nil })}, ErrUnreadable, "one signature"},
		"two signatures in it":        {Candidate{Bundle: edit(func(b *bundle) { b.Envelope.Signatures = append(b.Envelope.Signatures, dsseSignature{}) })}, ErrUnreadable, "one signature"},
		"type outside of the sig":     {Candidate{Bundle: edit(func(b *bundle) { b.Envelope.PayloadType = "application/json" })}, ErrUnreadable, "envelope of type"},
		"another payload type":        {Candidate{Bundle: signedAs("application/json", fmt.Sprintf(about, statementType, hash, PredicateType))}, ErrUnreadable, "envelope of type"},
		"an attestation":              {Candidate{Bundle: signedAs(payloadType, fmt.Sprintf(about, statementType, hash, "https://slsa.dev/provenance/v1"))}, ErrUnreadable, "no signature"},
		"another statement":           {Candidate{Bundle: signedAs(payloadType, fmt.Sprintf(about, "x", hash, PredicateType))}, ErrUnreadable, "statement of type"},
		"no subject":                  {Candidate{Bundle: signedAs(payloadType, `{"_type":"`+statementType+`","predicateType":"`+PredicateType+`"}`)}, ErrUnreadable, "without a sha256"},
		"another hash function":       {Candidate{Bundle: signedAs(payloadType, strings.Replace(fmt.Sprintf(about, statementType, hash, PredicateType), "sha256", "sha512", 1))}, ErrUnreadable, "without a sha256"},
		"signed, but no JSON":         {Candidate{Bundle: signedAs(payloadType, "x")}, ErrUnreadable, "invalid character"},
		"signed, but two subjects":    {Candidate{Bundle: signedAs(payloadType, strings.Replace(fmt.Sprintf(about, statementType, hash, PredicateType), "{", `{"Subject":[],`, 1))}, ErrUnreadable, "by case only"},
		"two envelopes":               {Candidate{Bundle: []byte(`{"dsseEnvelope":{},"dsseEnvelope":{}}`)}, ErrUnreadable, "appears twice"},
		"two legacy digests":          {legacyAs(`{"critical":{"type":"` + legacyClaim + `","image":{"docker-manifest-digest":"` + digestB + `","docker-manifest-digest":"` + digestA + `"}}}`), ErrUnreadable, "appears twice"},
		"no JSON":                     {Candidate{Bundle: []byte("{")}, ErrUnreadable, "unexpected end"},
		"empty bundle":                {Candidate{Bundle: []byte{}}, ErrUnreadable, "unexpected end"},
		"huge":                        {Candidate{Bundle: make([]byte, MaxSize+1)}, ErrUnreadable, "more than the limit"},
		"no base64":                   {Candidate{Payload: []byte("{}"), Signature: "%"}, ErrUnreadable, "illegal base64"},
		"another legacy payload type": {legacyAs(`{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":"` + digestA + `"}}}`), ErrUnreadable, "payload of type"},
		"no legacy digest":            {legacyAs(`{"critical":{"type":"` + legacyClaim + `"}}`), ErrDigest, `""`},
		"signed, legacy, but no JSON": {legacyAs(`x`), ErrUnreadable, "invalid character"},
		"nothing, legacy":             {Candidate{}, ErrKey, ""},
	} {
		c.of.From = "referrer sha256:1"
		_, err := policy.Verify(t.Context(), digestA, []Candidate{c.of})
		if !errors.Is(err, c.want) || !errors.Is(err, ErrUnsigned) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "referrer sha256:1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := policy.Verify(t.Context(), digestA, nil)
	if !errors.Is(err, ErrUnsigned) || !strings.Contains(err.Error(), "no signature of it was found; sign it with wasmctl sign") {
		t.Error(err)
	}
}

// TestVerify_IsBounded: candidates beyond the limits are ignored, and an error stays short.
func TestVerify_IsBounded(t *testing.T) {
	keys := testKeys(t)
	policy := Policy{Keys: []*Key{&keys[0].Key}}
	many := slices.Repeat([]Candidate{sign(t, false, digestA, keys[1])}, MaxCandidates)
	good := sign(t, false, digestA, keys[0])
	if _, err := policy.Verify(t.Context(), digestA, append(many[:MaxCandidates-1], good)); err != nil {
		t.Error(err)
	}
	many[MaxCandidates-1] = many[0]
	_, err := policy.Verify(t.Context(), digestA, append(many, good))
	if err == nil || !strings.Contains(err.Error(), "found 33: ") || !strings.Contains(err.Error(), "; and 28 more") || len(err.Error()) > 2000 {
		t.Error(err)
	}
	policy.Keys = slices.Repeat(policy.Keys, MaxKeys+1)
	if _, err := policy.Verify(t.Context(), digestA, []Candidate{good}); err == nil {
		t.Error("too many keys are taken")
	}
}

// TestVerify_OnlyOfWholeDigests: a digest that could mean several, or none, is
// refused when it is signed and when it is verified.
func TestVerify_OnlyOfWholeDigests(t *testing.T) {
	key := testKeys(t)[0]
	policy := Policy{Keys: []*Key{&key.Key}}
	for _, digest := range []string{"", "sha256:", digestA[:70], digestA + "aa", strings.ToUpper(digestA), "sha256:" + strings.ToUpper(digestA[7:]), "sha512:" + digestA[7:], digestA[7:], digestA[:70] + "g"} {
		_, err := policy.Verify(t.Context(), digest, nil)
		_, bundleErr := SignBundle(digest, key)
		_, _, legacyErr := SignLegacy(digest, "", key)
		for _, err := range []error{err, bundleErr, legacyErr} {
			if err == nil || !strings.Contains(err.Error(), "64 hexadecimal") {
				t.Errorf("%q: %v", digest, err)
			}
		}
	}
}

type keyless func(digest string, bundle []byte) (string, error)

func (k keyless) VerifyKeyless(_ context.Context, digest string, bundle []byte) (string, error) {
	return k(digest, bundle)
}

// TestVerify_KeylessIsAskedForBundlesWithACertificate: and for nothing else.
func TestVerify_KeylessIsAskedForBundlesWithACertificate(t *testing.T) {
	key := testKeys(t)[0]
	bundle := []byte(`{"mediaType":"` + BundleType + `","verificationMaterial":{"certificate":{"rawBytes":""}},"dsseEnvelope":{"payloadType":"` + payloadType + `","signatures":[{}]}}`)
	asked := 0
	policy := Policy{Keys: []*Key{&key.Key}, Keyless: keyless(func(digest string, b []byte) (string, error) {
		asked++
		if digest != digestA || string(b) != string(bundle) {
			t.Errorf("asked for %s, %s", digest, b)
		}
		return "them", nil
	})}
	signers, err := policy.Verify(t.Context(), digestA, []Candidate{sign(t, false, digestA, key), sign(t, true, digestA, key), {Certificate: true}, {Bundle: bundle}})
	if want := []string{key.Fingerprint(), "them"}; err != nil || asked != 1 || !slices.Equal(signers, want) {
		t.Errorf("%v, %v, asked %d times", signers, err, asked)
	}
	byKey := Policy{Keys: policy.Keys}
	if id := policy.ID(); id == byKey.ID() || id == policy.ID() {
		t.Error("a policy that admits what nothing names has an ID that lasts")
	}
	if policy.KeylessID = "them"; policy.ID() == byKey.ID() {
		t.Error("a policy whose identities have a name has no ID of its own")
	}
}

// TestPolicy_IDIsOfTheKeys: in any order, however often.
func TestPolicy_IDIsOfTheKeys(t *testing.T) {
	keys := testKeys(t)
	id := func(of ...int) string {
		var p Policy
		for _, i := range of {
			p.Keys = append(p.Keys, &keys[i].Key)
		}
		return p.ID()
	}
	if id(0, 1) != id(1, 0) || id(0, 1) != id(1, 0, 1) {
		t.Error("one set of keys has two IDs")
	}
	seen := map[string]bool{}
	for _, of := range [][]int{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {0, 1, 2}} {
		if seen[id(of...)] {
			t.Errorf("%v has the ID of others", of)
		}
		seen[id(of...)] = true
	}
}

// TestPreAuth_HasTheFormOfDSSE is the example of its specification.
func TestPreAuth_HasTheFormOfDSSE(t *testing.T) {
	const want = "DSSEv1 29 http://example.com/HelloWorld 11 hello world"
	if got := preAuth("http://example.com/HelloWorld", []byte("hello world")); string(got) != want {
		t.Errorf("got %q", got)
	}
}
