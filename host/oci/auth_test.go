// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
)

func basic(user string) map[string]string {
	user = strings.ReplaceAll(user, ":", "_") // which ends a user's name
	return map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":secret"))}
}

func users(list []oci.Credential) (names []string) {
	for _, c := range list {
		names = append(names, c.Username)
	}
	return names
}

// The rules of a kubelet, for both types of secrets.
func TestPullSecret_MatchesAsAKubelet(t *testing.T) {
	auths := map[string]any{}
	for _, pattern := range []string{
		"ghcr.io", "ghcr.io/org", "https://ghcr.io/v2/org/app", "*.example.com", "a.example.com", "*.example.com:5000", "https://index.docker.io/v1/", "h.io:5000/x",
	} {
		auths[pattern] = basic(pattern)
	}
	auths["empty.io"] = map[string]string{}
	content, err := json.Marshal(auths)
	if err != nil {
		t.Fatal(err)
	}
	old, err := oci.PullSecret("ns/s", "kubernetes.io/dockercfg", map[string][]byte{".dockercfg": content})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := oci.PullSecret("ns/s", "kubernetes.io/dockerconfigjson", map[string][]byte{".dockerconfigjson": []byte(`{"auths":` + string(content) + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string][]string{
		"ghcr.io/org/app":     {"https_//ghcr.io/v2/org/app", "ghcr.io/org", "ghcr.io"},
		"ghcr.io/org/other":   {"ghcr.io/org", "ghcr.io"},
		"ghcr.io/other":       {"ghcr.io"},
		"a.example.com/x":     {"a.example.com", "*.example.com"},
		"b.example.com/x":     {"*.example.com"},
		"example.com/x":       nil,
		"b.a.example.com/x":   nil,
		"b.example.com:5000/": {"*.example.com_5000"},
		"b.example.com:80/x":  nil,
		"docker.io/a/b":       {"https_//index.docker.io/v1/"},
		"h.io:5000/x/y":       {"h.io_5000/x"},
		"h.io/x/y":            nil,
		"my-ghcr.io/org":      nil,
		"ghcr.io.other/org":   nil,
		"empty.io/x":          nil,
	} {
		host, repository, _ := strings.Cut(image, "/")
		for _, r := range []oci.Keyring{ring, old} {
			if got := users(r.For(host, repository)); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", image, got, want)
			}
		}
	}
	c := ring.For("ghcr.io", "other")[0]
	if c.Password != "secret" || c.Source != "secret[ns/s]" || strings.Contains(fmt.Sprintf("%v %+v %#v", c, c, c), "secret:") {
		t.Errorf("%v", c)
	}
}

// An unreadable secret is an error that reveals none of its content.
func TestPullSecret_IsNeverSilentlyEmpty(t *testing.T) {
	for _, s := range []struct{ kind, key, content string }{
		{"Opaque", ".dockerconfigjson", `{}`},
		{"kubernetes.io/dockerconfigjson", ".dockercfg", `{}`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"auths":{"h":{"auth":"hunter2!"}}}`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"auths":{"h":{"auth":"aHVudGVyMg=="}}}`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `hunter2`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"auths":"hunter2"}`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"auths":{"h":{"password":"x","password":"hunter2"}}}`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"auths":{"hunter2":{"username":"u"},"hunter2":{}}}`},
		{"kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"Auths":{"h":{"auth":"aHVudGVyMjp4"}}}`},
		{"kubernetes.io/dockercfg", ".dockercfg", `{"https://[":{"username":"u","password":"hunter2"}}`},
		{"kubernetes.io/dockercfg", ".dockercfg", `{"[a-.io":{"username":"u","password":"hunter2"}}`},
	} {
		_, err := oci.PullSecret("ns/s", s.kind, map[string][]byte{s.key: []byte(s.content)})
		if !errors.Is(err, oci.ErrUnauthorized) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "secret[ns/s]") {
			t.Errorf("%s: %v", s.content, err)
		}
	}
}

func FuzzPullSecret(f *testing.F) {
	f.Add([]byte(`{"auths":{"*.h.io:5000/a":{"auth":"dTpw","identitytoken":"t"}}}`), "a.h.io:5000", "a/b")
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p"}}}`), "docker.io", "x")
	f.Fuzz(func(t *testing.T, content []byte, host, repository string) {
		ring, err := oci.PullSecret("s", "kubernetes.io/dockerconfigjson", map[string][]byte{".dockerconfigjson": content})
		if err != nil {
			if !errors.Is(err, oci.ErrUnauthorized) {
				t.Error(err)
			}
			return
		}
		for _, c := range ring.For(host, repository) {
			if c.Username == "" && c.Password == "" && c.IdentityToken == "" && c.RegistryToken == "" {
				t.Errorf("%q has an empty credential", content)
			}
		}
	})
}

// login writes the files of docker and podman, and a helper.
func login(t *testing.T, docker, podman, helper string) (*oci.Login, map[string]string) {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "XDG_RUNTIME_DIR": filepath.Join(dir, "run")}
	for path, content := range map[string]string{".docker/config.json": docker, "run/containers/auth.json": podman, "bin/docker-credential-test": helper} {
		if content == "" {
			continue
		}
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":/bin:/usr/bin")
	return oci.UserLogin(func(name string) string { return env[name] }), env
}

func TestLogin_ReadsDockerAndPodman(t *testing.T) {
	auths := func(user string) string {
		b, err := json.Marshal(map[string]any{"auths": map[string]any{"h.io": basic(user)}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	l, env := login(t, auths("docker"), auths("podman"), "")
	get := func(l *oci.Login) []string {
		t.Helper()
		list, err := l.Credentials(t.Context(), "h.io", "a")
		if err != nil {
			t.Fatal(err)
		}
		return users(list)
	}
	if got := get(l); !slices.Equal(got, []string{"docker", "podman"}) {
		t.Errorf("%v", got)
	}
	env["REGISTRY_AUTH_FILE"] = filepath.Join(env["XDG_RUNTIME_DIR"], "containers", "auth.json")
	if got := get(oci.UserLogin(func(name string) string { return env[name] })); !slices.Equal(got, []string{"podman", "docker"}) {
		t.Errorf("%v", got)
	}
	if l, _ := login(t, "", "", ""); get(l) != nil {
		t.Error("nothing is configured")
	}
}

const helper = `#!/bin/sh
read host
case $host in
ok.io) echo '{"ServerURL":"ok.io","Username":"helped","Secret":"s"}' ;;
token.io) echo '{"ServerURL":"token.io","Username":"<token>","Secret":"s"}' ;;
none.io) echo 'credentials not found in native keychain'; exit 1 ;;
*) echo 'the keychain is locked'; exit 1 ;;
esac
`

func TestLogin_AsksHelpers(t *testing.T) {
	l, _ := login(t, `{"credsStore": "test", "auths": {"ok.io": {}}}`, "", helper)
	if list, err := l.Credentials(t.Context(), "ok.io", "a"); err != nil || !slices.Equal(users(list), []string{"helped"}) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := l.Credentials(t.Context(), "token.io", "a"); err != nil || len(list) != 1 || list[0].IdentityToken != "s" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := l.Credentials(t.Context(), "none.io", "a"); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if !slices.Equal(l.Helpers(), []string{"test"}) {
		t.Errorf("%v", l.Helpers())
	}
}

// What is configured and fails is an error, and not an anonymous request.
func TestLogin_IsNeverSilentlyEmpty(t *testing.T) {
	for config, want := range map[string]string{
		`{"credsStore": "test"}`:                        "the keychain is locked",
		`{"credHelpers": {"h.io": "missing"}}`:          "docker-credential-missing",
		`{"credHelpers": {"h.io": "../../other"}}`:      "no name of a program",
		`{"auths": {"h.io": {"auth": "***"}}}`:          "not in base64",
		`{"auths": `:                                    "no JSON",
		`{"auths": {"h.io": {"auth": ["unexpected"]}}}`: "not of the form",
	} {
		l, _ := login(t, config, "", helper)
		if _, err := l.Credentials(t.Context(), "h.io", "a"); !errors.Is(err, oci.ErrUnauthorized) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	missing := oci.UserLogin(func(name string) string { return map[string]string{"REGISTRY_AUTH_FILE": "/none/auth.json"}[name] })
	if _, err := missing.Credentials(t.Context(), "h.io", "a"); !errors.Is(err, oci.ErrUnauthorized) {
		t.Error(err)
	}
}
