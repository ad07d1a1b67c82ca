// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// Login finds the credentials that docker and podman store for a user.
type Login struct {
	// Files are read in this order, each time, because tokens are replaced.
	Files []LoginFile
}

// LoginFile is a file of docker or podman.
type LoginFile struct {
	Path string
	// Needed means that a missing file is an error.
	Needed bool
}

// UserLogin finds the files like docker and podman: $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json
// or ~/.docker/config.json, and $XDG_RUNTIME_DIR/containers/auth.json.
func UserLogin(getenv func(string) string) *Login {
	l := &Login{}
	podman := getenv("REGISTRY_AUTH_FILE")
	if podman != "" {
		l.Files = append(l.Files, LoginFile{podman, true})
	}
	if dir := getenv("DOCKER_CONFIG"); dir != "" {
		l.Files = append(l.Files, LoginFile{filepath.Join(dir, "config.json"), true})
	} else if home := getenv("HOME"); home != "" {
		l.Files = append(l.Files, LoginFile{filepath.Join(home, ".docker", "config.json"), false})
	}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" && podman == "" {
		l.Files = append(l.Files, LoginFile{filepath.Join(dir, "containers", "auth.json"), false})
	}
	return l
}

// loginConfig is the part of such a file that concerns credentials.
type loginConfig struct {
	Auths       map[string]authEntry `json:"auths"`
	CredsStore  string               `json:"credsStore"`
	CredHelpers map[string]string    `json:"credHelpers"`
}

// read reads a file. It returns nil if the file is missing and not needed.
func (f LoginFile) read() (*loginConfig, error) {
	content, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) && !f.Needed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &loginConfig{}
	if err := strictjson.Unmarshal(content, c); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, jsonError(err))
	}
	return c, nil
}

// Credentials returns the credentials to try for a repository, in order. An empty list means that
// none are configured. If a file or a helper fails, it returns an error.
func (l *Login) Credentials(ctx context.Context, host, repository string) ([]Credential, error) {
	var list []Credential
	for _, f := range l.Files {
		c, err := f.read()
		if err != nil {
			return nil, as(ErrUnauthorized, fmt.Errorf("credentials: %w", err))
		}
		if c == nil {
			continue
		}
		helped, err := c.help(ctx, host)
		if err != nil {
			return nil, as(ErrUnauthorized, fmt.Errorf("credentials for %s: %s: %w", host, f.Path, err))
		}
		ring, err := newKeyring(f.Path, c.Auths)
		if err != nil {
			return nil, err
		}
		list = append(append(list, helped...), ring.For(host, repository)...)
	}
	return list, nil
}

// help asks the helper for a host, if there is one.
func (c *loginConfig) help(ctx context.Context, host string) ([]Credential, error) {
	address := host
	if dockerHub(host) == "index.docker.io" {
		address = "https://index.docker.io/v1/"
	}
	helper := c.CredsStore
	for _, name := range []string{host, address} {
		if h, ok := c.CredHelpers[name]; ok {
			helper = h
		}
	}
	if helper == "" {
		return nil, nil
	}
	program := "docker-credential-" + helper
	if filepath.Base(program) != program {
		return nil, fmt.Errorf("helper %q: is no name of a program", helper)
	}
	got, err := credentials.NewNativeStore(helper).Get(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it must be in PATH and work: an image without it needs a pull secret, or auths in the file", program, err)
	}
	is := Credential{got.Username, got.Password, got.RefreshToken, got.AccessToken, program}
	if is.empty() {
		return nil, nil
	}
	return []Credential{is}, nil
}

// Helpers returns the programs that the files name.
func (l *Login) Helpers() []string {
	var names []string
	for _, f := range l.Files {
		c, err := f.read()
		if err != nil || c == nil {
			continue // Credentials reports the error
		}
		for _, h := range c.CredHelpers {
			names = append(names, h)
		}
		if c.CredsStore != "" {
			names = append(names, c.CredsStore)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
