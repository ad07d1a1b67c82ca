// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// newKeys are a key of each kind: always the same, since a fuzz target's seeds are
// signed in another process than the one that verifies them.
var newKeys = sync.OnceValues(func() (list []crypto.Signer, err error) {
	for _, kind := range []string{"ecdsa", "ed25519", "rsa"} {
		content, err := os.ReadFile(filepath.Join("testdata", "sigstore", kind+".key"))
		if err != nil {
			return nil, err
		}
		key, err := ParsePrivateKey(content, []byte("wasmctl"))
		if err != nil {
			return nil, err
		}
		list = append(list, key.signer)
	}
	return list, nil
})

func testKeys(t testing.TB) (list []*PrivateKey) {
	t.Helper()
	signers, err := newKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signers {
		key, err := ParsePrivateKey(pkcs8(t, s), nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, key)
	}
	return list
}

func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func spki(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// prehashed is a signature of a message's hash, as cosign signs with Ed25519.
func prehashed(t *testing.T, key *PrivateKey, message string) []byte {
	t.Helper()
	if _, ok := key.public.(ed25519.PublicKey); !ok {
		sig, err := key.sign([]byte(message))
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	sum := sha512.Sum512([]byte(message))
	sig, err := key.signer.Sign(nil, sum[:], &ed25519.Options{Hash: crypto.SHA512})
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// TestKeys_PrivateAndPublicBelongTogether: each form of a private key signs what
// its public key verifies, and no other key does.
func TestKeys_PrivateAndPublicBelongTogether(t *testing.T) {
	signers, err := newKeys()
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(signers[0].(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]struct {
		private []byte
		of      int
	}{
		"PKCS#8, ECDSA":   {pkcs8(t, signers[0]), 0},
		"PKCS#8, Ed25519": {pkcs8(t, signers[1]), 1},
		"PKCS#8, RSA":     {pkcs8(t, signers[2]), 2},
		"SEC 1":           {pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}), 0},
		"PKCS#1":          {pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(signers[2].(*rsa.PrivateKey))}), 2},
	}
	for name, form := range forms {
		private, err := ParsePrivateKey(form.private, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, s := range signers {
			public, err := ParsePublicKey(spki(t, s.Public()))
			if err != nil {
				t.Fatal(err)
			}
			if same := public.Fingerprint() == private.Fingerprint(); same != (i == form.of) {
				t.Errorf("%s: has the fingerprint of key %d: %v", name, i, same)
			}
			sig, err := private.sign([]byte("message"))
			if err != nil {
				t.Fatal(err)
			}
			for _, sig := range [][]byte{sig, prehashed(t, private, "message")} {
				if ok := public.verifies([]byte("message"), sig); ok != (i == form.of) {
					t.Errorf("%s: key %d verifies: %v", name, i, ok)
				}
				if public.verifies([]byte("messagf"), sig) {
					t.Errorf("%s: key %d verifies another message", name, i)
				}
			}
		}
	}
}

// TestGenerateKey_OpensWithItsPassword: and with no other.
func TestGenerateKey_OpensWithItsPassword(t *testing.T) {
	for _, password := range []string{"", "secret"} {
		private, public, err := GenerateKey([]byte(password))
		if err != nil {
			t.Fatal(err)
		}
		key, err := ParsePrivateKey(private, []byte(password))
		if err != nil {
			t.Fatal(err)
		}
		pub, err := ParsePublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		if pub.Fingerprint() != key.Fingerprint() {
			t.Error("the files are of different keys")
		}
		if _, err := ParsePrivateKey(private, []byte("other")); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD") {
			t.Errorf("another password: %v", err)
		}
	}
}

// TestKeys_OthersAreRefused: the error has the reason, but not the content.
func TestKeys_OthersAreRefused(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	good := testKeys(t)[0]
	public := spki(t, good.public)
	block := func(kind, content string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(content)})
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":       {nil, "not a PEM file"},
		"two":         {append(public, public...), "several PEM blocks"},
		"private":     {pkcs8(t, p384), "is a private key"},
		"certificate": {block("CERTIFICATE", ""), `"CERTIFICATE"; want PUBLIC KEY`},
		"damaged":     {block("PUBLIC KEY", "x"), "asn1"},
		"P-384":       {spki(t, p384.Public()), "want P-256"},
		"RSA 1024":    {spki(t, weak.Public()), "1024 bits; want at least 2048"},
	} {
		if _, err := ParsePublicKey(c.content); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	slow := `{"kdf":{"name":"scrypt","params":{"N":1073741824,"r":8,"p":1}},"cipher":{"name":"nacl/secretbox","nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}`
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":     {nil, "not a PEM file"},
		"public":    {public, `"PUBLIC KEY"; want a private key`},
		"openssl":   {block("ENCRYPTED PRIVATE KEY", ""), "without a password"},
		"P-384":     {pkcs8(t, p384), "want P-256"},
		"RSA 1024":  {pkcs8(t, weak), "want at least 2048"},
		"slow":      {block(encryptedType, slow), "unsupported scrypt parameters"},
		"short":     {block(encryptedType, strings.Replace(slow, "AAAA", "", 1)), "unsupported scrypt parameters"},
		"no JSON":   {block(encryptedType, "x"), "invalid character"},
		"no kdf":    {block(encryptedType, "{}"), "unknown kdf"},
		"truncated": {block(encryptedType, strings.Replace(slow, "1073741824", "32768", 1)), "the password is wrong"},
	} {
		if _, err := ParsePrivateKey(c.content, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
