package signature

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"
)

// encryptedType is the PEM type of a private key that cosign has written.
const encryptedType = "ENCRYPTED SIGSTORE PRIVATE KEY"

// sealed is the content of such a file: PKCS#8 in a secretbox, whose key scrypt
// makes of the password.
type sealed struct {
	KDF struct {
		Name   string       `json:"name"`
		Params scryptParams `json:"params"`
		Salt   []byte       `json:"salt"`
	} `json:"kdf"`
	Cipher struct {
		Name  string `json:"name"`
		Nonce []byte `json:"nonce"`
	} `json:"cipher"`
	Ciphertext []byte `json:"ciphertext"`
}

type scryptParams struct {
	N int `json:"N"`
	R int `json:"r"`
	P int `json:"p"`
}

// known are the parameters that cosign's versions write; others could take any
// time and memory.
var known = []scryptParams{{1 << 16, 8, 1}, {1 << 15, 8, 1}, {1 << 17, 8, 1}}

const kdfName, cipherName = "scrypt", "nacl/secretbox"

func decrypt(content, password []byte) ([]byte, error) {
	var s sealed
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("encrypted private key: %w", err)
	}
	var nonce [24]byte
	if s.KDF.Name != kdfName || s.Cipher.Name != cipherName || len(s.Cipher.Nonce) != len(nonce) || !slices.Contains(known, s.KDF.Params) {
		return nil, fmt.Errorf("encrypted private key: unknown encryption %.40q, %.40q, %+v; want that of cosign", s.KDF.Name, s.Cipher.Name, s.KDF.Params)
	}
	copy(nonce[:], s.Cipher.Nonce)
	key, err := s.key(password)
	if err != nil {
		return nil, err
	}
	der, ok := secretbox.Open(nil, s.Ciphertext, &nonce, key)
	if !ok {
		return nil, errors.New("encrypted private key: the password is wrong, or the file is damaged; set COSIGN_PASSWORD")
	}
	return der, nil
}

func encrypt(der, password []byte) ([]byte, error) {
	var s sealed
	s.KDF.Name, s.KDF.Params, s.KDF.Salt, s.Cipher.Name = kdfName, known[0], make([]byte, 32), cipherName
	var nonce [24]byte
	_, _ = rand.Read(s.KDF.Salt) // never fails
	_, _ = rand.Read(nonce[:])
	key, err := s.key(password)
	if err != nil {
		return nil, err
	}
	s.Cipher.Nonce, s.Ciphertext = nonce[:], secretbox.Seal(nil, der, &nonce, key)
	return json.Marshal(s)
}

func (s *sealed) key(password []byte) (*[32]byte, error) {
	p := s.KDF.Params
	key, err := scrypt.Key(password, s.KDF.Salt, p.N, p.R, p.P, 32)
	if err != nil {
		return nil, err
	}
	return (*[32]byte)(key), nil
}
