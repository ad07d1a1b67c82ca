// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// PEM types of a public key, and of a private key that cosign has encrypted.
const publicType, encryptedType = "PUBLIC KEY", "ENCRYPTED SIGSTORE PRIVATE KEY"

// minRSA is the minimum number of bits of an RSA key.
const minRSA = 2048

// Key is a public key: ECDSA on P-256, Ed25519, or RSA.
type Key struct {
	public crypto.PublicKey
	der    []byte            // the SubjectPublicKeyInfo
	sum    [sha256.Size]byte // of der
}

// Fingerprint returns "sha256:" and the hexadecimal hash of the key's SubjectPublicKeyInfo in DER.
func (k *Key) Fingerprint() string { return "sha256:" + hex.EncodeToString(k.sum[:]) }

// ParsePublicKey reads a PEM file with one public key.
func ParsePublicKey(content []byte) (*Key, error) {
	block, err := onlyBlock(content)
	switch {
	case err != nil:
		return nil, err
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errors.New("is a private key; give the public key that belongs to it, and keep this one secret")
	case block.Type != publicType:
		return nil, fmt.Errorf("has a PEM block %.40q; want PUBLIC KEY", block.Type)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return newKey(public)
}

func onlyBlock(content []byte) (*pem.Block, error) {
	block, rest := pem.Decode(content)
	if block == nil {
		return nil, errors.New("is not a PEM file")
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("has several PEM blocks; want one key")
	}
	return block, nil
}

func newKey(public crypto.PublicKey) (*Key, error) {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return nil, fmt.Errorf("is an ECDSA key on %s; want P-256", k.Curve.Params().Name)
		}
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSA {
			return nil, fmt.Errorf("is an RSA key of %d bits; want at least %d", n, minRSA)
		}
	case ed25519.PublicKey:
	default:
		return nil, fmt.Errorf("is a key of type %T; want ECDSA on P-256, Ed25519 or RSA", public)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	return &Key{public, der, sha256.Sum256(der)}, nil
}

// pem returns the key in the format of ParsePublicKey.
func (k *Key) pem() []byte { return pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: k.der}) }

// verifies reports whether a signature of a message is this key's.
func (k *Key) verifies(message, signature []byte) bool {
	sum := sha256.Sum256(message)
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(public, sum[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey: // cosign's sign uses the second form, and its verify accepts the first
		long := sha512.Sum512(message)
		return ed25519.Verify(public, message, signature) ||
			ed25519.VerifyWithOptions(public, long[:], signature, &ed25519.Options{Hash: crypto.SHA512}) == nil
	}
	return false
}

// PrivateKey is a key that signs.
type PrivateKey struct {
	Key

	signer crypto.Signer
}

// ParsePrivateKey reads a PEM file with one private key: PKCS#8, PKCS#1, SEC 1, or a key of cosign,
// which is encrypted with a password.
func ParsePrivateKey(content, password []byte) (*PrivateKey, error) {
	block, err := onlyBlock(content)
	if err != nil {
		return nil, err
	}
	var private any
	switch block.Type {
	case "PRIVATE KEY":
		private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		private, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case encryptedType, "ENCRYPTED COSIGN PRIVATE KEY":
		var der []byte
		if der, err = encrypted.Decrypt(block.Bytes, password); err != nil {
			return nil, fmt.Errorf("encrypted private key: %w: the password is wrong, or cosign did not write the file; set COSIGN_PASSWORD", err)
		}
		private, err = x509.ParsePKCS8PrivateKey(der)
	default:
		return nil, fmt.Errorf("has a PEM block %.40q; want a private key of cosign, or one in PKCS#8 without a password", block.Type)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("is a key of type %T; want one that signs", private)
	}
	public, err := newKey(signer.Public())
	if err != nil {
		return nil, err
	}
	return &PrivateKey{*public, signer}, nil
}

// sign signs a message. For Ed25519, it uses the form that cosign's verify accepts, without a hash.
func (k *PrivateKey) sign(message []byte) ([]byte, error) {
	if _, ok := k.public.(ed25519.PublicKey); ok {
		return k.signer.Sign(nil, message, crypto.Hash(0))
	}
	sum := sha256.Sum256(message)
	return k.signer.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// GenerateKey returns the PEM files of a new ECDSA key on P-256, in the format of cosign. The
// private key is encrypted with the password, which may be empty.
func GenerateKey(password []byte) (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	if der, err = encrypted.Encrypt(der, password); err != nil {
		return nil, nil, err
	}
	of, err := newKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: encryptedType, Bytes: der}), of.pem(), nil
}
