// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// Credential authenticates to a registry.
type Credential struct {
	Username, Password string
	// IdentityToken is exchanged for others at the registry's token service. RegistryToken is sent
	// unchanged.
	IdentityToken, RegistryToken string
	// Source is the origin, for errors.
	Source string
}

func (c Credential) oras() auth.Credential {
	return auth.Credential{Username: c.Username, Password: c.Password, RefreshToken: c.IdentityToken, AccessToken: c.RegistryToken}
}

func (c Credential) empty() bool { return c.oras() == auth.EmptyCredential }

// String hides the secret parts.
func (c Credential) String() string { return "credentials of " + cmp.Or(c.Source, "no source") }

// GoString hides the secret parts.
func (c Credential) GoString() string { return c.String() }

// Keyring is a list of credentials with their registries.
type Keyring []key

type key struct {
	host, path string // host can have *
	credential Credential
}

// authEntry is a credential in the files of docker, podman and pull secrets.
type authEntry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Types of secrets that PullSecret reads, and the keys of their data.
const (
	typeConfigJSON = "kubernetes.io/dockerconfigjson"
	typeCfg        = "kubernetes.io/dockercfg"
	keyConfigJSON  = ".dockerconfigjson"
	keyCfg         = ".dockercfg"
)

// PullSecret reads the credentials of a Secret of type kubernetes.io/dockerconfigjson or
// kubernetes.io/dockercfg. name is for errors. An unreadable Secret is an error: otherwise a
// registry would be asked anonymously.
func PullSecret(name, secretType string, data map[string][]byte) (Keyring, error) {
	source := "secret[" + name + "]"
	switch secretType {
	case typeConfigJSON:
		var file struct {
			Auths map[string]authEntry `json:"auths"`
		}
		return keyringOf(source, data, keyConfigJSON, &file, func() map[string]authEntry { return file.Auths })
	case typeCfg:
		var auths map[string]authEntry
		return keyringOf(source, data, keyCfg, &auths, func() map[string]authEntry { return auths })
	}
	return nil, as(ErrUnauthorized, fmt.Errorf("%s: is of type %q; a pull secret is of type %s or %s", source, secretType, typeConfigJSON, typeCfg))
}

func keyringOf(source string, data map[string][]byte, name string, into any, auths func() map[string]authEntry) (Keyring, error) {
	content, found := data[name]
	if !found {
		return nil, as(ErrUnauthorized, fmt.Errorf("%s: has no key %s", source, name))
	}
	if err := strictjson.Unmarshal(content, into); err != nil {
		return nil, as(ErrUnauthorized, fmt.Errorf("%s: %s: %w", source, name, jsonError(err)))
	}
	return newKeyring(source, auths())
}

// jsonError returns an error about a secret text without the text.
func jsonError(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("no JSON at byte %d", e.Offset)
	}
	if _, ok := errors.AsType[*strictjson.KeyError](err); ok {
		return errors.New("has a key twice, or in another case than docker login writes it")
	}
	return errors.New("is not of the form that docker login writes")
}

// newKeyring sorts credentials like a kubelet: if two have the same start, the longer one is first.
// It omits entries without credentials, which docker writes if a helper has them.
func newKeyring(source string, auths map[string]authEntry) (Keyring, error) {
	var ring Keyring
	for pattern, entry := range auths {
		c, err := entry.credential()
		if err != nil {
			return nil, as(ErrUnauthorized, fmt.Errorf("%s: %q: %w", source, pattern, err))
		}
		if c.empty() {
			continue
		}
		c.Source = source
		k, err := newKey(pattern, c)
		if err != nil {
			return nil, as(ErrUnauthorized, fmt.Errorf("%s: %q: %w", source, pattern, err))
		}
		ring = append(ring, k)
	}
	slices.SortFunc(ring, func(a, b key) int {
		return cmp.Or(strings.Compare(b.host+b.path, a.host+a.path), strings.Compare(a.credential.Username, b.credential.Username))
	})
	return ring, nil
}

func (e authEntry) credential() (Credential, error) {
	c := Credential{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken}
	if e.Auth == "" {
		return c, nil
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(e.Auth, "="))
	if err != nil {
		return c, errors.New("auth is not in base64")
	}
	var found bool
	c.Username, c.Password, found = strings.Cut(strings.TrimRight(string(text), "\x00"), ":")
	if !found {
		return c, errors.New("auth has no user and password")
	}
	return c, nil
}

// newKey reads the target of a credential: a host, with or without https://, a port, globs, and a
// path, with a possible /v1/ or /v2/ before it.
func newKey(pattern string, c Credential) (key, error) {
	if !strings.Contains(pattern, "://") {
		pattern = "https://" + pattern
	}
	u, err := url.Parse(pattern)
	if err != nil || u.Host == "" {
		return key{}, errors.New("is no registry")
	}
	for part := range strings.SplitSeq(u.Host, ".") {
		if _, err := path.Match(part, ""); err != nil {
			return key{}, errors.New("is no pattern of a host")
		}
	}
	at := u.Path
	for _, api := range []string{"/v1/", "/v2/"} {
		if rest, ok := strings.CutPrefix(at+"/", api); ok {
			at = "/" + strings.TrimSuffix(rest, "/")
		}
	}
	if at == "/" {
		at = ""
	}
	return key{dockerHub(u.Host), at, c}, nil
}

// dockerHub returns the canonical name for all names of Docker Hub.
func dockerHub(host string) string {
	if slices.Contains([]string{"docker.io", "registry-1.docker.io", "index.docker.io"}, host) {
		return "index.docker.io"
	}
	return host
}

// For returns the credentials to try for a repository, in order.
func (ring Keyring) For(host, repository string) []Credential {
	var list []Credential
	for _, k := range ring {
		if k.matches(dockerHub(host), "/"+repository) {
			list = append(list, k.credential)
		}
	}
	return list
}

// matches follows the kubelet's rule: the same number of host parts, each matched by its glob, the
// same port, and the start of the path.
func (k key) matches(host, at string) bool {
	return strings.HasPrefix(at, k.path) && k.matchesHost(host)
}

func (k key) matchesHost(host string) bool {
	pattern, port, _ := strings.Cut(k.host, ":")
	host, hostPort, _ := strings.Cut(host, ":")
	want, got := strings.Split(pattern, "."), strings.Split(host, ".")
	if port != hostPort || len(want) != len(got) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], got[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
