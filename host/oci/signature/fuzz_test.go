// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzBundle: whatever a bundle is made of, it is admitted only with the payload
// that was signed.
func FuzzBundle(f *testing.F) {
	key := testKeys(f)[0]
	good := sign(f, false, digestA, key)
	f.Add(good.Bundle)
	f.Add(sign(f, false, digestB, key).Bundle)
	f.Add(sign(f, false, digestA, testKeys(f)[1]).Bundle)
	f.Add([]byte(`{"mediaType":"` + BundleType + `","verificationMaterial":{"certificate":{}},"dsseEnvelope":{"payloadType":"` + payloadType + `","signatures":[{}]}}`))
	policy := Policy{Keys: []*Key{&key.Key}}
	var signed bundle
	if err := json.Unmarshal(good.Bundle, &signed); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		signers, err := policy.Verify(t.Context(), digestA, []Candidate{{From: "fuzz", Bundle: content}})
		if (err == nil) != (len(signers) > 0) {
			t.Fatal(signers, err)
		}
		if err != nil {
			return
		}
		var b bundle
		if err := json.Unmarshal(content, &b); err != nil || !bytes.Equal(b.Envelope.Payload, signed.Envelope.Payload) {
			t.Errorf("admitted %s", content)
		}
	})
}

// FuzzLegacy: as FuzzBundle, for the format before.
func FuzzLegacy(f *testing.F) {
	key := testKeys(f)[0]
	good := sign(f, true, digestA, key)
	f.Add(good.Payload, good.Signature, false)
	f.Add(good.Payload, good.Signature, true)
	f.Add([]byte(`{"critical":{}}`), "", false)
	policy := Policy{Keys: []*Key{&key.Key}}
	f.Fuzz(func(t *testing.T, payload []byte, signature string, certificate bool) {
		_, err := policy.Verify(t.Context(), digestA, []Candidate{{From: "fuzz", Payload: payload, Signature: signature, Certificate: certificate}})
		if err == nil && !bytes.Equal(payload, good.Payload) {
			t.Errorf("admitted %s", payload)
		}
	})
}

// FuzzKeys: no file of a key makes its reader fail.
func FuzzKeys(f *testing.F) {
	key := testKeys(f)[0]
	f.Add(spki(f, key.public))
	f.Add(pkcs8(f, key.signer))
	f.Fuzz(func(t *testing.T, content []byte) {
		public, err := ParsePublicKey(content)
		private, privateErr := ParsePrivateKey(content, nil)
		if err == nil && public.Fingerprint() == "" || privateErr == nil && private.Fingerprint() == "" || err == nil && privateErr == nil {
			t.Errorf("read %s", content)
		}
	})
}
