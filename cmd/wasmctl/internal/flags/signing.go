// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"fmt"
	"os"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// passwordVariable is the environment variable with the password of a private key, as for cosign.
const passwordVariable = "COSIGN_PASSWORD"

// maxKeyFile is the maximum size of a key file, in bytes.
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

// VerifyKeys are the files of public keys of --verify-key. One of them must have
// signed each module. If empty, unsigned modules are accepted.
type VerifyKeys []string

// Verify reads the files. It returns nil if there are none.
func (k VerifyKeys) Verify() (*v1alpha1.Verify, error) {
	if len(k) == 0 {
		return nil, nil //nolint:nilnil // as documented
	}
	if len(k) > signature.MaxKeys {
		return nil, failure.Usage.Wrap(fmt.Errorf("--verify-key: has %d files, want at most %d", len(k), signature.MaxKeys))
	}
	v := &v1alpha1.Verify{}
	for _, path := range k {
		content, err := readSmall(path)
		if err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--verify-key: %w", err))
		}
		v.Keys = append(v.Keys, string(content))
	}
	_, errs := v.Policy(nil)
	return v, failure.Usage.Wrap(v1alpha1.Errors(errs, k.flag))
}

// flag returns the flag for the path of a field of v1alpha1.Verify.
func (k VerifyKeys) flag(path string) string {
	var i int
	if _, err := fmt.Sscanf(path, "keys[%d]", &i); err != nil || i >= len(k) {
		return "--verify-key"
	}
	return "--verify-key " + k[i]
}

// Policy reads the files. It returns nil if there are none.
func (k VerifyKeys) Policy() (*signature.Policy, error) {
	v, err := k.Verify()
	if v == nil || err != nil {
		return nil, err
	}
	policy, _ := v.Policy(nil) // Verify has checked it
	return policy, nil
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

// GenerateKey writes PREFIX.key and PREFIX.pub, which must not exist, and returns the public key.
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
