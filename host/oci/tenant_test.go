// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
)

// trusting makes a client use its own transport, which verifies the certificates of these registries.
func trusting(list ...*ocitest.Registry) func(*oci.Options) {
	roots := x509.NewCertPool()
	for _, r := range list {
		if c, err := x509.ParseCertificate(r.Certificate()); err == nil {
			roots.AddCert(c)
		}
	}
	return func(o *oci.Options) { o.Transport, o.Roots = nil, roots }
}

// guarded makes a client treat all hosts but these as named by a tenant.
func guarded(hosts ...string) func(*oci.Options) {
	return func(o *oci.Options) {
		o.Guard = &oci.Guard{Named: func(host string) bool { return slices.Contains(hosts, host) }}
	}
}

// listener counts the connections to a port, and answers each with a text.
func listener(t *testing.T, answer string) (port string, count *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count = &atomic.Int64{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
	})
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port, count
}

// TestRedirects_End: a registry that redirects without end gets six requests for each of the client's, and no more.
func TestRedirects_End(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	var asked atomic.Int64
	reg.Use(func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
		if asked.Add(1) > 1000 {
			ocitest.Fail(w, http.StatusNotFound, "ENOUGH")
			return
		}
		http.Redirect(w, req, req.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := client(reg).Pull(t.Context(), at); !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), "redirect") {
		t.Error(err)
	}
	if n := asked.Load(); n > 6 {
		t.Errorf("%d requests", n)
	}
}

// TestRedirects_LeadNowhereElse: not to this machine, not to a link-local address, and not out of TLS, even to hosts that may be used
// without it. The same holds for a token service.
func TestRedirects_LeadNowhereElse(t *testing.T) {
	reg, plain := ocitest.New(t), ocitest.NewPlain(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	push(t, oci.New(oci.Options{Insecure: []string{plain.Host}}), ref(t, plain, "a/b:1"), module(1, 100))
	plain.Requests()
	port, connected := listener(t, "")
	for _, to := range []string{"https://localhost:" + port, "https://[::ffff:127.0.0.1]:" + port, "https://0.0.0.0:" + port, "https://169.254.169.254", "http://" + plain.Host} {
		reg.Use(ocitest.On(http.MethodGet, "/manifests/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			http.Redirect(w, req, to+req.URL.Path, http.StatusTemporaryRedirect)
		}))
		c := client(reg, trusting(reg), func(o *oci.Options) { o.Insecure = []string{plain.Host} })
		if _, err := c.Pull(t.Context(), at); !errors.Is(err, oci.ErrRefused) {
			t.Errorf("%s: %v", to, err)
		}
	}
	reg.Use(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://localhost:`+port+`/token",service="test"`)
		ocitest.Fail(w, http.StatusUnauthorized, "UNAUTHORIZED")
	})
	if _, err := client(reg, trusting(reg)).Pull(t.Context(), at); !errors.Is(err, oci.ErrBarred) {
		t.Errorf("token service: %v", err)
	}
	if n := connected.Load(); n > 0 || len(plain.Requests()) > 0 {
		t.Errorf("%d connections", n)
	}
}

// TestGuard_JudgesTheAddress: of the host of a reference, too, unless the operator has named it.
func TestGuard_JudgesTheAddress(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	reg.Requests()
	if _, err := client(reg, trusting(reg), guarded()).Pull(t.Context(), at); !errors.Is(err, oci.ErrBarred) || !errors.Is(err, oci.ErrRefused) || len(reg.Requests()) > 0 {
		t.Errorf("not named: %v", err)
	}
	if _, err := client(reg, trusting(reg), guarded(reg.Host)).Pull(t.Context(), at); err != nil {
		t.Errorf("named: %v", err)
	}
	private := &oci.Guard{Bars: netip.Addr.IsPrivate}
	for text, want := range map[string][2]bool{ // without, and with a rule about private addresses
		"127.0.0.1": {true, true}, "127.9.9.9": {true, true}, "::1": {true, true}, "::ffff:127.0.0.1": {true, true}, "0.0.0.0": {true, true}, "::": {true, true},
		"169.254.169.254": {true, true}, "fe80::1%eth0": {true, true}, "fd00:ec2::254": {true, true}, "64:ff9b::a9fe:a9fe": {true, true}, "224.0.0.1": {true, true},
		"255.255.255.255": {true, true}, "10.0.0.1": {false, true}, "192.168.1.1": {false, true}, "fd00::1": {false, true}, "::ffff:10.0.0.1": {false, true},
		"64:ff9b::a00:1": {false, true}, "8.8.8.8": {false, false}, "2001:4860::8888": {false, false},
	} {
		ip := netip.MustParseAddr(text)
		if got := [2]bool{oci.Barred(nil, ip), oci.Barred(private, ip)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestAllow_MatchesWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern, image string
		want           bool
	}{
		{"ghcr.io", "ghcr.io/acme/a", true},
		{"ghcr.io", "ghcr.io.evil.example/acme/a", false},
		{"ghcr.io/acme", "ghcr.io/acme", true},
		{"ghcr.io/acme/", "ghcr.io/acme/a/b:1", true},
		{"ghcr.io/acme", "ghcr.io/acme-evil/a", false},
		{"ghcr.io", "ghcr.io:8443/acme/a", false},
		{"registry:5000", "registry:5000/a", true},
		{"*.example.com", "eu.example.com/a", true},
		{"*.example.com", "a.eu.example.com/a", false},
		{"docker.io/acme", "index.docker.io/acme/a", true},
	} {
		allow, err := oci.ParseAllow([]string{"other.example", c.pattern})
		r, also := oci.Parse(c.image)
		if got := allow.Allows(r); got != c.want || err != nil || also != nil {
			t.Errorf("%s, %s: %v, %v, %v", c.pattern, c.image, got, err, also)
		}
	}
	allow, err := oci.ParseAllow([]string{"a.example:5000/team", "*.b.example"})
	if err != nil || !allow.Names("a.example:5000") || allow.Names("a.example") || allow.Names("x.b.example") || allow.Names("*.b.example") {
		t.Error(allow, err)
	}
	if _, err := oci.ParseAllow([]string{"[.example"}); err == nil {
		t.Error("a wrong pattern")
	}
}

// TestPublic_TellsOnlyRegistriesApart: whatever is behind a port, in the error of an outsider it looks like a closed
// one, also if a registry redirects to it. A registry makes the difference between its own answers.
func TestPublic_TellsOnlyRegistriesApart(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	plain := ocitest.NewPlain(t)
	garbage, _ := listener(t, "220 mail.internal ESMTP\r\n")
	hosts := []string{"127.0.0.1:1", plain.Host, "127.0.0.1:" + garbage}
	for _, status := range []int{200, 204, 302, 400, 401, 403, 404} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>internal</html>"))
		}))
		s.StartTLS()
		t.Cleanup(s.Close)
		hosts = append(hosts, strings.TrimPrefix(s.URL, "https://"))
	}
	public := func(r oci.Ref) error {
		t.Helper()
		c := client(reg, func(o *oci.Options) {
			o.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(address, "example.com", "127.0.0.1", 1))
			}
		})
		_, err := c.Pull(t.Context(), r)
		if err == nil {
			t.Fatalf("%v can be pulled", r)
		}
		return c.Public(t.Context(), r, err)
	}
	texts := map[string]bool{}
	for _, host := range hosts {
		for _, r := range []oci.Ref{{Host: host, Repository: "a/b", Tag: "1"}, {Host: host, Repository: "a/b", Digest: at.Digest}} {
			err := public(r)
			if !errors.Is(err, oci.ErrUnreachable) {
				t.Errorf("%s: %v", host, err)
			}
			texts[strings.ReplaceAll(err.Error(), host, "HOST")] = true
		}
		reg.Use(ocitest.On("", "/manifests/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			http.Redirect(w, req, "https://"+strings.Replace(host, "127.0.0.1", "example.com", 1)+req.URL.Path, http.StatusTemporaryRedirect)
		}))
		err := public(at)
		texts[strings.ReplaceAll(err.Error(), reg.Host, "HOST")] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d texts: %v", len(texts), texts)
	}
	kinds := []error{oci.ErrNotFound, oci.ErrUnauthorized, oci.ErrUnreachable, oci.ErrRefused}
	for i, layer := range []ocitest.Layer{ocitest.Status(404, "MANIFEST_UNKNOWN"), ocitest.Status(403, "DENIED"), ocitest.Status(503, "X"), ocitest.Change(bytes.ToUpper)} {
		reg.Use(ocitest.On("", "/manifests/", layer))
		if err := public(at); !errors.Is(err, kinds[i]) {
			t.Errorf("%d: %v", i, err)
		}
	}
	reg.Use(ocitest.Status(429, "TOOMANYREQUESTS", "Retry-After", "600"))
	if err := public(at); !errors.Is(err, oci.ErrUnreachable) || !strings.Contains(err.Error(), "too many requests") {
		t.Error(err)
	}
}

// TestErrors_AreOneLine: a registry writes no lines and no commands to a terminal.
func TestErrors_AreOneLine(t *testing.T) {
	reg := ocitest.New(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"errors": [{"code": "DENIED", "message": "no\nwasmctl: everything is fine\u001b[2J%s"}]}`, strings.Repeat("x", 7000))
	})
	_, err := client(reg).Pull(t.Context(), ref(t, reg, "a/b:1").At("sha256:"+strings.Repeat("0", 64)))
	if err == nil || strings.ContainsAny(err.Error(), "\n\r\x1b") || len(err.Error()) > 3000 || !strings.Contains(err.Error(), "everything is fine") {
		t.Errorf("%q", err)
	}
}

// TestLane_BoundsConnections: many pulls at a time, and many one after another, each with a Client of its own, and unused
// connections to one registry do not keep another one waiting.
func TestLane_BoundsConnections(t *testing.T) {
	const most, pulls = 4, 40
	var mu sync.Mutex
	open, highest := 0, 0
	add := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		open += n
		highest = max(highest, open)
	}
	regs := []*ocitest.Registry{ocitest.New(t), ocitest.New(t), ocitest.New(t)}
	var refs []oci.Ref
	for _, reg := range regs {
		refs = append(refs, push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100)))
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		add(1)
		return &counted{conn, sync.OnceFunc(func() { add(-1) })}, nil
	}
	lane := oci.NewLane(most)
	var wg sync.WaitGroup
	for i := range pulls {
		pull := func() {
			c := client(regs[0], func(o *oci.Options) { o.Lane, o.Transport.DialContext = lane, dial })
			if _, err := c.Pull(t.Context(), refs[i%len(refs)]); err != nil {
				t.Error(err)
			}
		}
		if i < pulls/2 {
			pull()
			continue
		}
		wg.Go(pull)
	}
	wg.Wait()
	mu.Lock() // a connection that no pull needed may still be dialed
	defer mu.Unlock()
	if highest > most {
		t.Errorf("%d connections at a time", highest)
	}
}

// counted calls a function when it is closed.
type counted struct {
	net.Conn

	closed func()
}

func (c *counted) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// TestLane_RemembersWaitingTimes: all Clients of a tenant respect them, with any credentials and roots.
func TestLane_RemembersWaitingTimes(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	reg.Use(ocitest.Status(http.StatusServiceUnavailable, "X", "Retry-After", "600"))
	reg.Requests()
	lane := oci.NewLane(4)
	for i := range 5 {
		c := client(reg, trusting(reg), func(o *oci.Options) {
			o.Lane = lane
			if i > 2 {
				o.Roots.AddCert(&x509.Certificate{Raw: []byte{byte(i)}})
			}
			o.Credentials = func(context.Context, string, string) ([]oci.Credential, error) {
				return []oci.Credential{{Username: fmt.Sprint(i), Password: "x"}}, nil
			}
		})
		if _, err := c.Pull(t.Context(), at); !errors.Is(err, oci.ErrUnreachable) {
			t.Error(err)
		}
	}
	if got := reg.Requests(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestCache_ALayerNeedsAProof: a manifest that names a private layer, in a registry that claims to have it, gives no
// access to the copy in the cache. In its own repository, a request without its content is enough.
func TestCache_ALayerNeedsAProof(t *testing.T) {
	owner, thief := ocitest.New(t), ocitest.New(t)
	wasm, dir := module(1, 1000), t.TempDir()
	at := push(t, client(owner), ref(t, owner, "team/private:1"), wasm)
	stolen := push(t, client(thief), ref(t, thief, "a/b:1"), wasm)
	elsewhere := push(t, client(owner), ref(t, owner, "team/public:1"), wasm)
	tenant := func(reg *ocitest.Registry, name string) *oci.Client {
		return client(reg, func(o *oci.Options) { o.CacheDir, o.PolicyID = dir, name })
	}
	if _, err := tenant(owner, "owner").Pull(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	gone := ocitest.On(http.MethodGet, "/blobs/", ocitest.Status(404, "BLOB_UNKNOWN"))
	thief.Use(gone) // a HEAD finds it
	if _, err := tenant(thief, "thief").Pull(t.Context(), stolen); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("another registry: %v", err)
	}
	owner.Use(gone)
	if _, err := tenant(owner, "other").Pull(t.Context(), elsewhere); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("another repository: %v", err)
	}
	if a, err := tenant(owner, "other").Pull(t.Context(), at); err != nil || string(a.Wasm) != string(wasm) {
		t.Errorf("the same repository: %v", err)
	}
	owner.Use(ocitest.On("", "/blobs/", ocitest.Status(403, "DENIED")))
	if _, err := tenant(owner, "third").Pull(t.Context(), at); !errors.Is(err, oci.ErrUnauthorized) {
		t.Errorf("without a right to the layer: %v", err)
	}
}
