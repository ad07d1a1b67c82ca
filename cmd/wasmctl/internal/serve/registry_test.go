// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// puller is a Server that only pulls from a registry with TLS, and its log.
func puller(t *testing.T, reg *ocitest.Registry, change func(*Config)) (*Server, *bytes.Buffer) {
	t.Helper()
	roots, err := oci.AddRoots(nil, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: reg.Certificate()}))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cfg := Config{
		Cluster: &rest.Config{Host: "https://198.51.100.7:6443"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Registry: func() oci.Options { return oci.Options{Roots: roots} },
	}
	change(&cfg)
	return &Server{cfg: cfg, files: newFiles()}, &log
}

// pushed pushes a module, and returns its image.
func pushed(t *testing.T, reg *ocitest.Registry, name string) string {
	t.Helper()
	ref, err := oci.Parse(reg.Host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	at, err := oci.New(oci.Options{Transport: reg.Transport()}).Push(t.Context(), ref, []byte("\x00asm\x01\x00\x00\x00"), oci.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(at.String(), oci.Scheme)
}

func of(namespace, image string) *reconciler {
	r := &reconciler{kind: v1alpha1.KindNamespaced, meta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	r.spec.Module.Image = image
	return r
}

// TestFromRegistry_OnlyWhatTheOperatorPermits: by its name, and by the address that is dialed.
func TestFromRegistry_OnlyWhatTheOperatorPermits(t *testing.T) {
	reg := ocitest.New(t)
	image := pushed(t, reg, "team/web:1")
	for name, c := range map[string]struct {
		allow []string
		want  string // the reason of the problem; empty if there is none
	}{
		"this machine":         {nil, "RegistryNotAllowed"},
		"named":                {[]string{reg.Host}, ""},
		"its repositories":     {[]string{reg.Host + "/team"}, ""},
		"another repository":   {[]string{reg.Host + "/other"}, "RegistryNotAllowed"},
		"another registry":     {[]string{"registry.example"}, "RegistryNotAllowed"},
		"a glob names no host": {[]string{strings.Replace(reg.Host, "127.", "*.", 1)}, "RegistryNotAllowed"},
	} {
		allow, err := oci.ParseAllow(c.allow)
		if err != nil {
			t.Fatal(err)
		}
		reg.Requests()
		s, _ := puller(t, reg, func(cfg *Config) { cfg.Allow = allow })
		_, err = s.fromRegistry(t.Context(), of("shop", image), "user")
		p, found := errors.AsType[*problem](err)
		switch asked := len(reg.Requests()) > 0; {
		case asked != (c.want == ""):
			t.Errorf("%s: asked: %v", name, asked)
		case c.want == "" && err != nil || c.want != "" && (!found || p.reason != c.want || !p.stalled || !strings.Contains(p.message, "--registry-allow")):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBarred_ThisMachineAndTheAPIServer: their addresses, whatever their ports and their range.
func TestBarred_ThisMachineAndTheAPIServer(t *testing.T) {
	s := &Server{cfg: Config{Cluster: &rest.Config{Host: "https://198.51.100.7:6443"}}}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if ip := netip.MustParsePrefix(a.String()).Addr(); !s.barred(ip) {
			t.Errorf("%v is an address of this machine", ip)
		}
	}
	for _, public := range []bool{false, true} {
		s.cfg.PublicRegistries = public
		for text, want := range map[string]bool{"198.51.100.7": true, "198.51.100.8": false, "10.255.255.254": public, "fdff::1234": public, "100.127.255.254": public} {
			if got := s.barred(netip.MustParseAddr(text)); got != want {
				t.Errorf("public %v: %s: %v", public, text, got)
			}
		}
	}
	s.cfg.Cluster.Host = "localhost:6443"
	if !s.barred(netip.MustParseAddr("127.0.0.1")) {
		t.Error("the API server has a name")
	}
}

// TestFromRegistry_DetailsAreInTheLogOnly: a tenant sees the class of an error, and the log has one line with the details.
func TestFromRegistry_DetailsAreInTheLogOnly(t *testing.T) {
	reg := ocitest.New(t)
	image := pushed(t, reg, "team/web:1")
	s, log := puller(t, reg, func(cfg *Config) { cfg.Allow, _ = oci.ParseAllow([]string{reg.Host}) })
	const secret = "internal\nforged"
	reg.Use(ocitest.On(http.MethodGet, "/manifests/", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"errors": [{"code": "DENIED", "message": %q}]}`, secret)
	}))
	const pulls = 20
	for range pulls {
		for _, namespace := range []string{"a", "b"} {
			_, err := s.fromRegistry(t.Context(), of(namespace, image), "user")
			p, _ := errors.AsType[*problem](err)
			if p == nil || p.reason != "Unauthorized" || strings.Contains(p.message, "internal") || !strings.Contains(p.message, "spec.module.pullSecrets") {
				t.Fatal(err)
			}
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2*pulls || strings.Count(log.String(), "internal") != lines {
		t.Errorf("%d lines: %s", lines, log)
	}
}

// TestFromRegistry_ATenantSharesItsConnections: many pulls use few connections, and those of another tenant use others.
func TestFromRegistry_ATenantSharesItsConnections(t *testing.T) {
	reg := ocitest.New(t)
	image := pushed(t, reg, "team/web:1")
	var mu sync.Mutex
	clients := map[string]map[string]bool{} // addresses by tenant
	reg.Use(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		mu.Lock()
		tenant := strings.Split(req.URL.Path, "/")[2]
		if clients[tenant] == nil {
			clients[tenant] = map[string]bool{}
		}
		clients[tenant][req.RemoteAddr] = true
		mu.Unlock()
		next.ServeHTTP(w, req)
	})
	other := pushed(t, reg, "other/web:1")
	mu.Lock()
	clear(clients)
	mu.Unlock()
	s, _ := puller(t, reg, func(cfg *Config) { cfg.Allow, _ = oci.ParseAllow([]string{reg.Host}) })
	for range 50 {
		for _, image := range []string{image, other} {
			if _, err := s.fromRegistry(t.Context(), of(image[len(reg.Host)+1:][:4], image), "user"); err != nil {
				t.Fatal(err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for tenant, list := range clients {
		if len(list) > tenantConnections {
			t.Errorf("%s: %d connections", tenant, len(list))
		}
		for address := range list {
			if tenant == "team" && clients["other"][address] {
				t.Error("tenants share a connection")
			}
		}
	}
	if len(clients) != 2 {
		t.Errorf("%v", clients)
	}
}

// TestPolicyID_IsOfTheCredentials: another password, user or key is asked for again.
func TestPolicyID_IsOfTheCredentials(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]struct {
		keys, user string
		list       []oci.Credential
	}{
		"anonymous":        {"k", "u", nil},
		"another user":     {"k", "v", nil},
		"another key":      {"l", "u", nil},
		"a password":       {"k", "u", []oci.Credential{{Username: "a", Password: "b", Source: "secret[pull]"}}},
		"another password": {"k", "u", []oci.Credential{{Username: "a", Password: "c", Source: "secret[pull]"}}},
		"shifted":          {"k", "u", []oci.Credential{{Username: "ab", Source: "secret[pull]"}}},
		"token":            {"k", "u", []oci.Credential{{IdentityToken: "b", Username: "a"}}},
	} {
		id := policyID(c.keys, c.user, c.list)
		if before, found := seen[id]; found {
			t.Errorf("%s equals %s", name, before)
		}
		seen[id] = name
	}
}

// TestWait_HidesTheCauseInTheTime: a refused connection is reported at the same time as one without an answer, and the
// end of the process does not wait for it.
func TestWait_HidesTheCauseInTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if wait(t.Context(), start.Add(answerTime)); time.Since(start) != answerTime {
			t.Errorf("after %v", time.Since(start))
		}
		if wait(t.Context(), start.Add(answerTime)); time.Since(start) != answerTime {
			t.Error("it waits although the time is over")
		}
		start = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if wait(ctx, start.Add(answerTime)); time.Since(start) != 0 {
			t.Error("it waits for the end of its context")
		}
	})
	if !pullProblem(oci.ErrUnreachable).conceals || pullProblem(oci.ErrNotFound).conceals || pullProblem(errors.Join(oci.ErrUnreachable, &oci.BusyError{})).conceals {
		t.Error("another error is delayed")
	}
}
