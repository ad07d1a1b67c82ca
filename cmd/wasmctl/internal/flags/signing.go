package flags

import (
	"fmt"
	"os"

	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// passwordVariable has the password of a private key: it is cosign's.
const passwordVariable = "COSIGN_PASSWORD"

// maxKeyFile is how many bytes the file of a key may have.
const maxKeyFile = 64 << 10

// ReadKey reads the file of a private key.
func ReadKey(path string) (*signature.PrivateKey, error) {
	content, err := readSmall(path)
	if err != nil {
		return nil, failure.Usage.Wrap(fmt.Errorf("--key: %w", err))
	}
	key, err := signature.ParsePrivateKey(content, []byte(os.Getenv(passwordVariable)))
	if err != nil {
		return nil, failure.Usage.Wrap(fmt.Errorf("--key %s: %w", path, err))
	}
	return key, nil
}

// VerifyKeys are the files of public keys of --verify-key. One of these must have
// signed a module; none: nobody must.
type VerifyKeys []string

// Policy reads the files. It is nil where there are none.
func (k VerifyKeys) Policy() (*signature.Policy, error) {
	if len(k) == 0 {
		return nil, nil //nolint:nilnil // as documented
	}
	if len(k) > signature.MaxKeys {
		return nil, failure.Usage.Wrap(fmt.Errorf("--verify-key: %d keys: want at most %d", len(k), signature.MaxKeys))
	}
	p := &signature.Policy{}
	for _, path := range k {
		content, err := readSmall(path)
		if err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--verify-key: %w", err))
		}
		key, err := signature.ParsePublicKey(content)
		if err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--verify-key %s: %w", path, err))
		}
		p.Keys = append(p.Keys, key)
	}
	return p, nil
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%s: has %d bytes, and is no key", path, info.Size())
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // the user's
}

// GenerateKey writes PREFIX.key and PREFIX.pub, which must not exist, and returns the
// public key.
func GenerateKey(prefix string) (*signature.Key, error) {
	password, ok := os.LookupEnv(passwordVariable)
	if !ok {
		return nil, failure.Usage.Wrap(fmt.Errorf("set %s to the password of the new key, which may be empty", passwordVariable))
	}
	private, public, err := signature.GenerateKey([]byte(password))
	if err != nil {
		return nil, err
	}
	if err := createFile(prefix+".key", private, 0o600); err != nil {
		return nil, err
	}
	if err := createFile(prefix+".pub", public, 0o644); err != nil {
		return nil, err
	}
	return signature.ParsePublicKey(public)
}

// createFile writes a file that does not exist yet.
func createFile(path string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the user's
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
