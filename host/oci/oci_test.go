// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// module returns some bytes that begin as a module does.
func module(seed uint64, size int) []byte {
	b := make([]byte, size)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	copy(b, "\x00asm\x01\x00\x00\x00")
	return b
}

func client(r *ocitest.Registry, change ...func(*oci.Options)) *oci.Client {
	o := oci.Options{Transport: r.Transport(), Timeout: time.Minute}
	for _, c := range change {
		c(&o)
	}
	return oci.New(o)
}

func ref(t testing.TB, r *ocitest.Registry, rest string) oci.Ref {
	t.Helper()
	parsed, err := oci.Parse("oci://" + r.Host + "/" + rest)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func push(t testing.TB, c *oci.Client, r oci.Ref, wasm []byte) oci.Ref {
	t.Helper()
	at, err := c.Push(t.Context(), r, wasm, oci.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A pulled module equals the pushed one, in both formats, and the same bytes have the same digest
// in each registry and at each time.
func TestPush_SameBytesSameDigest(t *testing.T) {
	for i, image := range []bool{false, true} {
		var digests []string
		wasm := module(uint64(i), 10_000)
		for range 2 {
			reg := ocitest.New(t)
			c := client(reg)
			o := oci.PushOptions{Image: image, Annotations: map[string]string{"b": "2", "a": "1", oci.AnnotationName: "x"}}
			at, err := c.Push(t.Context(), ref(t, reg, "a/b:1"), wasm, o)
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, at.Digest)
			a, err := c.Pull(t.Context(), ref(t, reg, "a/b:1"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Wasm, wasm) || a.Digest != at.Digest || a.Ref != at || a.Layer != string(digest.FromBytes(wasm)) || a.Annotations[oci.AnnotationName] != "x" {
				t.Errorf("image %v: pulled %v of %v", image, a.Ref, at)
			}
			o.Created = time.Unix(1700000000, 0)
			if other, err := c.Push(t.Context(), ref(t, reg, "a/b:2"), wasm, o); err != nil || other.Digest == at.Digest {
				t.Errorf("with another time: %v, %v", other, err)
			}
		}
		if digests[0] != digests[1] {
			t.Errorf("image %v: %v", image, digests)
		}
	}
}

// The manifest is that of the CNCF's layout.
func TestPush_WritesTheLayout(t *testing.T) {
	reg := ocitest.New(t)
	wasm := module(1, 100)
	at := push(t, client(reg), ref(t, reg, "a/b"), wasm)
	if at.Tag != "latest" || !strings.HasSuffix(at.String(), "/a/b:latest@"+at.Digest) {
		t.Errorf("no tag is %v", at)
	}
	get := func(path string) (v struct {
		Config struct{ MediaType, Digest string }
		Layers []struct{ MediaType, Digest string }

		Architecture, OS, Created string
		LayerDigests              []string
	},
	) {
		t.Helper()
		resp, err := (&http.Client{Transport: reg.Transport()}).Get("https://" + reg.Host + "/v2/a/b/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	m := get("manifests/latest")
	if m.Config.MediaType != oci.ConfigType || len(m.Layers) != 1 || m.Layers[0].MediaType != oci.LayerType {
		t.Errorf("%+v", m)
	}
	c := get("blobs/" + m.Config.Digest)
	if c.Architecture != "wasm" || c.OS != "wasip1" || c.Created != "1970-01-01T00:00:00Z" || !slices.Equal(c.LayerDigests, []string{string(digest.FromBytes(wasm))}) {
		t.Errorf("%+v", c)
	}
}

// After a tag was looked at, only digests are asked for, and the tag never again.
func TestPull_LooksAtATagOnce(t *testing.T) {
	reg := ocitest.New(t)
	c := client(reg)
	first := push(t, c, ref(t, reg, "a/b:1"), module(1, 1000))
	reg.Requests()
	moved := false
	reg.Use(ocitest.On(http.MethodHead, "/manifests/1", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(w, req)
		if !moved { // as soon as it has been resolved
			moved = true
			push(t, client(reg), ref(t, reg, "a/b:1"), module(2, 1000))
			reg.Requests()
		}
	}))
	m := c.Module(ref(t, reg, "a/b:1"))
	for range 2 {
		wasm, err := m.Read(t.Context())
		if err != nil || !bytes.Equal(wasm, module(1, 1000)) {
			t.Fatalf("the module of the moved tag was read: %v", err)
		}
	}
	if m.Ref() != first {
		t.Errorf("%v, want %v", m.Ref(), first)
	}
	for _, r := range reg.Requests() {
		if strings.HasSuffix(r, "/manifests/1") {
			t.Errorf("looked again: %s", r)
		}
	}
}

// The context of a read ends the download, and that of another read the wait for it.
func TestModule_ReadEndsWithItsContext(t *testing.T) {
	reg := ocitest.New(t)
	c := client(reg)
	push(t, c, ref(t, reg, "a/b:1"), module(1, 1000))
	asked := make(chan struct{}, 10)
	reg.Use(ocitest.On(http.MethodGet, "/blobs/", func(_ http.ResponseWriter, req *http.Request, _ http.Handler) {
		asked <- struct{}{}
		<-req.Context().Done()
	}))
	m := c.Module(ref(t, reg, "a/b:1"))
	first, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Read(first)
		ended <- err
	}()
	<-asked
	second, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Read(second); !errors.Is(err, context.Canceled) {
		t.Errorf("the read that waits: %v", err)
	}
	end()
	if err := <-ended; err == nil {
		t.Error("the read that downloads has succeeded")
	}
}

// Any other content from the registry is an error, and never a module.
func TestPull_RefusesWhatIsNotTheDigest(t *testing.T) {
	wasm := module(1, 5000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, change := range map[string]func([]byte) []byte{
		"a bit":    func(b []byte) []byte { b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8); return b },
		"less":     func(b []byte) []byte { return b[:rnd.IntN(len(b))] },
		"more":     func(b []byte) []byte { return append(b, 0) },
		"nothing":  func([]byte) []byte { return nil },
		"gigantic": func(b []byte) []byte { return append(b, make([]byte, 2<<20)...) },
		"another":  func(b []byte) []byte { return module(3, len(b)) },
		"same but": func(b []byte) []byte { return bytes.Replace(b, []byte(":"), []byte(": "), 1) },
	} {
		for _, part := range []string{"/blobs/", "/manifests/"} {
			reg := ocitest.New(t)
			at := push(t, client(reg), ref(t, reg, "a/b:1"), wasm)
			for _, r := range []oci.Ref{at, ref(t, reg, "a/b:1")} {
				for _, length := range []bool{false, true} {
					reg.Use(ocitest.On(http.MethodGet, part, ocitest.Change(change)))
					if length {
						reg.Use(ocitest.On(http.MethodGet, part, func(w http.ResponseWriter, req *http.Request, next http.Handler) {
							ocitest.Change(change)(noLength{w}, req, next)
						}))
					}
					a, err := client(reg, func(o *oci.Options) { o.CacheDir = t.TempDir() }).Pull(t.Context(), r)
					if name == "same but" && part == "/blobs/" {
						continue // it may have no colon
					}
					if err == nil || a != nil || !errors.Is(err, oci.ErrRefused) && !errors.Is(err, oci.ErrUnreachable) {
						t.Errorf("%s of %s: %v", name, part, err)
					}
				}
			}
		}
	}
}

// noLength leaves out the length that the registry gave.
type noLength struct{ http.ResponseWriter }

func (w noLength) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(status)
}

// put puts bytes into the registry as a manifest.
func put(t *testing.T, reg *ocitest.Registry, tag, mediaType string, manifest string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+reg.Host+"/v2/a/b/manifests/"+tag, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := (&http.Client{Transport: reg.Transport()}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// What is no module, or is not clearly one, is refused before any of it is read.
func TestPull_RefusesOtherLayouts(t *testing.T) {
	reg := ocitest.New(t)
	c := client(reg, func(o *oci.Options) { o.MaxSize = 10_000 })
	wasm := module(1, 100)
	at := push(t, c, ref(t, reg, "a/b:good"), wasm)
	layer := func(mediaType string, size int) string {
		return `{"mediaType":"` + mediaType + `","digest":"` + string(digest.FromBytes(wasm)) + `","size":` + itoa(size) + `}`
	}
	manifest := func(layers ...string) string {
		return `{"schemaVersion":2,"mediaType":"` + manifestType + `","config":` + layer("application/x", 100) + `,"layers":[` + strings.Join(layers, ",") + `]}`
	}
	entry := func(arch string) string {
		return `{"mediaType":"` + manifestType + `","digest":"` + at.Digest + `","size":400,"platform":{"architecture":"` + arch + `","os":"wasip1"}}`
	}
	index := func(entries ...string) string {
		return `{"schemaVersion":2,"mediaType":"` + indexType + `","manifests":[` + strings.Join(entries, ",") + `]}`
	}
	for name, c2 := range map[string]struct {
		mediaType, manifest, want string
	}{
		"two layers":     {manifestType, manifest(layer(oci.LayerType, 100), layer(oci.LayerType, 100)), "2 layers"},
		"no layer":       {manifestType, manifest(), "0 layers"},
		"a tar":          {manifestType, manifest(layer("application/vnd.oci.image.layer.v1.tar", 100)), "neither in a tar nor compressed"},
		"gzip":           {manifestType, manifest(layer("application/vnd.oci.image.layer.v1.tar+gzip", 100)), "neither in a tar nor compressed"},
		"too large":      {manifestType, manifest(layer(oci.LayerType, 10_001)), "more than it may have"},
		"no size":        {manifestType, manifest(layer(oci.LayerType, 0)), "0 bytes"},
		"negative":       {manifestType, manifest(layer(oci.LayerType, -1)), "-1 bytes"},
		"empty index":    {indexType, index(), "0 manifests"},
		"no wasm":        {indexType, index(entry("amd64")), "0 manifests"},
		"two of wasm":    {indexType, index(entry("wasm"), entry("wasm")), "2 manifests"},
		"index, layers":  {indexType, `{"schemaVersion":2,"mediaType":"` + indexType + `","manifests":[` + entry("wasm") + `],"layers":[` + layer(oci.LayerType, 100) + `]}`, "ambiguous"},
		"another case":   {manifestType, strings.TrimSuffix(manifest(layer(oci.LayerType, 100)), "}") + `,"Layers":[` + layer(oci.LayerType, 99) + `]}`, `key "Layers": differs from "layers"`},
		"in a layer":     {manifestType, manifest(strings.Replace(layer(oci.LayerType, 100), "digest", "Digest", 1)), `key "layers[0].Digest": differs`},
		"twice":          {manifestType, strings.TrimSuffix(manifest(layer(oci.LayerType, 100)), "}") + `,"layers":[` + layer(oci.LayerType, 99) + `]}`, `key "layers": appears twice`},
		"manifest, list": {manifestType, strings.TrimSuffix(manifest(layer(oci.LayerType, 100)), "}") + `,"manifests":[` + entry("wasm") + `]}`, "ambiguous"},
	} {
		tag := strings.NewReplacer(" ", "", ",", "").Replace(name)
		put(t, reg, tag, c2.mediaType, c2.manifest)
		reg.Requests()
		_, err := c.Pull(t.Context(), ref(t, reg, "a/b:"+tag))
		if !errors.Is(err, oci.ErrRefused) || failure.Of(err) != failure.Module || !strings.Contains(err.Error(), c2.want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, r := range reg.Requests() {
			if strings.Contains(r, "/blobs/") {
				t.Errorf("%s: %s", name, r)
			}
		}
	}
	for name, m := range map[string]struct{ mediaType, manifest string }{
		"kubewarden": {manifestType, manifest(layer("application/vnd.wasm.content.layer.v1+wasm", 100))},
		"solo":       {manifestType, manifest(layer("application/vnd.module.wasm.content.layer.v1+wasm", 100))},
		"one":        {indexType, index(entry("amd64"), entry("wasm"))},
	} {
		put(t, reg, name, m.mediaType, m.manifest)
		if a, err := c.Pull(t.Context(), ref(t, reg, "a/b:"+name)); err != nil || !bytes.Equal(a.Wasm, wasm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestCredentials_AreTriedInOrder(t *testing.T) {
	for name, layer := range map[string]ocitest.Layer{"basic": ocitest.Basic("u", "right"), "bearer": ocitest.Bearer("u", "right")} {
		reg := ocitest.New(t)
		push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
		reg.Use(layer)
		try := func(list ...oci.Credential) error {
			c := client(reg, func(o *oci.Options) {
				o.Credentials = func(context.Context, string, string) ([]oci.Credential, error) { return list, nil }
			})
			if _, err := c.Pull(t.Context(), ref(t, reg, "a/b:1")); err != nil {
				return err
			}
			_, err := c.Push(t.Context(), ref(t, reg, "a/c:1"), module(1, 100), oci.PushOptions{})
			return err
		}
		wrong := oci.Credential{Username: "u", Password: "wrong", Source: "secret[one]"}
		if err := try(wrong, oci.Credential{Username: "u", Password: "right"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err := try(wrong, wrong)
		if !errors.Is(err, oci.ErrUnauthorized) || failure.Of(err) != failure.Denied || !strings.Contains(err.Error(), "secret[one]") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: wrong ones: %v", name, err)
		}
		if err := try(); !errors.Is(err, oci.ErrUnauthorized) {
			t.Errorf("%s: without: %v", name, err)
		}
	}
}

// A source of credentials that fails ends the operation, although the registry would
// answer anybody.
func TestCredentials_NeverFallBackToNone(t *testing.T) {
	reg := ocitest.New(t)
	push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	reg.Requests()
	c := client(reg, func(o *oci.Options) {
		o.Credentials = func(context.Context, string, string) ([]oci.Credential, error) { return nil, errors.New("locked") }
	})
	if _, err := c.Pull(t.Context(), ref(t, reg, "a/b:1")); !errors.Is(err, oci.ErrUnauthorized) || !strings.Contains(err.Error(), "locked") {
		t.Error(err)
	}
	if got := reg.Requests(); len(got) > 0 {
		t.Errorf("was asked: %v", got)
	}
}

// A registry that sends a client elsewhere does not send the password along, whatever
// is asked for there.
func TestCredentials_StayWithTheirHost(t *testing.T) {
	reg, other := ocitest.New(t), ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	push(t, client(other), ref(t, other, "a/b:1"), module(1, 100))
	reg.Use(ocitest.Basic("u", "secret"), ocitest.On(http.MethodGet, "/blobs/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
		http.Redirect(w, req, "https://example.com"+req.URL.Path, http.StatusTemporaryRedirect)
	}))
	for _, asks := range []bool{false, true} {
		got := ""
		other.Use(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if got += req.Header.Get("Authorization"); asks {
				ocitest.Basic("u", "secret")(w, req, next)
				return
			}
			next.ServeHTTP(w, req)
		})
		c := client(reg, func(o *oci.Options) {
			o.Credentials = func(_ context.Context, host, _ string) ([]oci.Credential, error) {
				return []oci.Credential{{Username: "u", Password: "secret"}}, nil
			}
			o.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "example.com:443" {
					address = other.Host
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
		})
		if _, err := c.Pull(t.Context(), at); (err != nil) != asks {
			t.Errorf("asks %v: %v", asks, err)
		}
		if got != "" {
			t.Errorf("asks %v: was sent %q", asks, got)
		}
	}
}

// Nothing goes over the wire in the clear, nor to a registry without a certificate
// that is trusted, but for hosts that are named; not even by a redirect.
func TestInsecure_OnlyWhereNamed(t *testing.T) {
	plain, tls := ocitest.NewPlain(t), ocitest.New(t)
	named := func(hosts ...string) *oci.Client {
		return oci.New(oci.Options{Insecure: hosts, Timeout: time.Minute})
	}

	for _, reg := range []*ocitest.Registry{plain, tls} {
		push(t, named(reg.Host), ref(t, reg, "a/b:1"), module(1, 100))
		reg.Requests()
		_, err := named("other:5000").Pull(t.Context(), ref(t, reg, "a/b:1"))
		if !errors.Is(err, oci.ErrUnreachable) || failure.Of(err) != failure.Registry {
			t.Errorf("not named: %v", err)
		}
		if got := reg.Requests(); len(got) > 0 {
			t.Errorf("not named: %v", got)
		}
	}
	push(t, client(tls), ref(t, tls, "a/b:1"), module(1, 100))
	tls.Use(ocitest.On(http.MethodGet, "/blobs/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
		http.Redirect(w, req, "http://"+plain.Host+req.URL.Path, http.StatusTemporaryRedirect)
	}))
	if _, err := client(tls).Pull(t.Context(), ref(t, tls, "a/b:1")); !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), "leads to plain HTTP at "+plain.Host) {
		t.Errorf("redirect: %v", err)
	}
	if got := plain.Requests(); len(got) > 0 {
		t.Errorf("redirect: %v", got)
	}
}

// A registry that wants no requests for a time gets none, from no user of the client.
func TestBusy_IsLeftAlone(t *testing.T) {
	reg := ocitest.New(t)
	c := client(reg)
	push(t, c, ref(t, reg, "a/b:1"), module(1, 100))
	reg.Use(ocitest.Times(1, ocitest.Status(http.StatusTooManyRequests, "TOOMANYREQUESTS", "Retry-After", "1")))
	if _, err := c.Pull(t.Context(), ref(t, reg, "a/b:1")); err != nil {
		t.Errorf("a second: %v", err)
	}
	reg.Use(ocitest.Status(http.StatusTooManyRequests, "TOOMANYREQUESTS", "Retry-After", "600"))
	reg.Requests()
	for range 3 {
		if _, err := c.Pull(t.Context(), ref(t, reg, "a/c:1")); !errors.Is(err, oci.ErrUnreachable) {
			t.Error(err)
		}
	}
	_, err := c.Resolve(t.Context(), ref(t, reg, "x/y:1"))
	if busy, ok := errors.AsType[*oci.BusyError](err); !ok || time.Until(busy.Until) < 5*time.Minute {
		t.Errorf("%v", err)
	}
	if got := reg.Requests(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func TestErrors_SayWhatToDo(t *testing.T) {
	reg := ocitest.New(t)
	c := client(reg)
	push(t, c, ref(t, reg, "a/b:1"), module(1, 100))
	gone, err := oci.Parse("oci://localhost:1/a/b")
	if err != nil {
		t.Fatal(err)
	}
	for name, c2 := range map[string]struct {
		layer ocitest.Layer
		ref   oci.Ref
		kind  error
		want  string
	}{
		"no tag":     {nil, ref(t, reg, "a/b:none"), oci.ErrNotFound, "check repository, tag and digest"},
		"no range":   {nil, ref(t, reg, "a/b:^1.2"), oci.ErrNotFound, "none of 1 tags"},
		"no host":    {nil, gone, oci.ErrUnreachable, "check the name of the registry"},
		"denied":     {ocitest.Status(403, "DENIED"), ref(t, reg, "a/b:1"), oci.ErrUnauthorized, "check the credentials for " + reg.Host},
		"gone":       {ocitest.Status(410, "GONE"), ref(t, reg, "a/b:1"), oci.ErrRefused, "410"},
		"no service": {ocitest.Times(1, ocitest.Status(503, "X", "Retry-After", "100")), ref(t, reg, "a/b:1"), oci.ErrUnreachable, "try again later"},
	} {
		reg.Use()
		if c2.layer != nil {
			reg.Use(c2.layer)
		}
		_, err := client(reg).Pull(t.Context(), c2.ref)
		if !errors.Is(err, c2.kind) || strings.Contains(err.Error(), "%!") || strings.Contains(err.Error(), "HOST") || !strings.Contains(err.Error(), c2.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClient_CountsTransferredBytes: a push and a pull count at least the bytes of the module.
func TestClient_CountsTransferredBytes(t *testing.T) {
	reg := ocitest.New(t)
	var bytes atomic.Int64
	const size = 300_000
	c := oci.New(oci.Options{Transport: reg.Transport(), Transferred: &bytes})
	r := push(t, c, ref(t, reg, "a/b:1"), module(1, size))
	if n := bytes.Swap(0); n < size || n > 2*size {
		t.Errorf("a push of %d bytes counts %d", size, n)
	}
	if _, err := c.Pull(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Load(); n < size || n > 2*size {
		t.Errorf("a pull of %d bytes counts %d", size, n)
	}
}

// TestPull_TrustsTheNamedAuthority: without it, the error names the flag.
func TestPull_TrustsTheNamedAuthority(t *testing.T) {
	reg := ocitest.New(t)
	r := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	_, err := oci.New(oci.Options{Timeout: time.Minute}).Pull(t.Context(), r)
	if !errors.Is(err, oci.ErrUnreachable) || !strings.Contains(err.Error(), "certificate signed by unknown authority") || !strings.Contains(err.Error(), "--registry-ca FILE, or SSL_CERT_FILE") {
		t.Errorf("%v", err)
	}
	certificate, err := x509.ParseCertificate(reg.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	if _, err := oci.New(oci.Options{Timeout: time.Minute, Roots: roots}).Pull(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// GitLab's registry knows the types of images only.
func TestPush_NamesTheOtherFormat(t *testing.T) {
	refuses := func(status int, code string) ocitest.Layer {
		return ocitest.On(http.MethodPut, "/manifests/", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			b, _ := io.ReadAll(req.Body)
			if req.Body = io.NopCloser(bytes.NewReader(b)); bytes.Contains(b, []byte(oci.ConfigType)) {
				ocitest.Fail(w, status, code)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	for _, layer := range []ocitest.Layer{refuses(400, "MANIFEST_INVALID"), refuses(415, "UNSUPPORTED")} {
		reg := ocitest.New(t, layer)
		c := client(reg)
		_, err := c.Push(t.Context(), ref(t, reg, "a/b:1"), module(1, 100), oci.PushOptions{})
		if !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), "registry["+reg.Host+"]") || !strings.Contains(err.Error(), "--format image") {
			t.Error(err)
		}
		if _, err := c.Push(t.Context(), ref(t, reg, "a/b:1"), module(1, 100), oci.PushOptions{Image: true}); err != nil {
			t.Error(err)
		}
	}
}

// A registry that does not say the digest is asked for the manifest.
func TestResolve_WithoutADigestInTheAnswer(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 100))
	reg.Use(ocitest.On("", "/manifests/1", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(noDigest{w}, req)
	}))
	if got, err := client(reg).Resolve(t.Context(), ref(t, reg, "a/b:1")); err != nil || got != at {
		t.Errorf("%v, %v", got, err)
	}
}

type noDigest struct{ http.ResponseWriter }

func (w noDigest) WriteHeader(status int) {
	w.Header().Del("Docker-Content-Digest")
	w.ResponseWriter.WriteHeader(status)
}

func TestResolve_TakesTheHighestOfARange(t *testing.T) {
	reg := ocitest.New(t)
	c := client(reg)
	for i, tag := range []string{"1.2.0", "v1.10.1", "1.9.9", "2.0.0", "1.11.0-rc.1", "latest"} {
		push(t, c, ref(t, reg, "a/b:"+tag), module(uint64(i), 100))
	}
	for r, want := range map[string]string{"^1.2": "v1.10.1", "1.x": "v1.10.1", "~1.9.0": "1.9.9", "*": "2.0.0"} {
		if got, err := c.Resolve(t.Context(), ref(t, reg, "a/b:"+r)); err != nil || got.Tag != want || got.Digest == "" || got.Range != "" {
			t.Errorf("%s: %v, %v", r, got, err)
		}
	}
}

// The cache answers only if it may.
func TestCache_IsBoundToThePolicyAndTheRepository(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 1000))
	push(t, client(reg), ref(t, reg, "c/d:1"), module(1, 1000))
	dir := t.TempDir()
	admit := func(context.Context, *oci.Subject) error { return nil }
	with := func(policy string, key string, verify func(context.Context, *oci.Subject) error) *oci.Client {
		return client(reg, func(o *oci.Options) { o.CacheDir, o.PolicyID, o.CacheKey, o.Verify = dir, policy, []byte(key), verify })
	}
	cached := func(c *oci.Client, r oci.Ref) bool {
		t.Helper()
		a, err := c.Pull(t.Context(), r)
		if err != nil || !bytes.Equal(a.Wasm, module(1, 1000)) {
			t.Fatal(err)
		}
		return a.Cached
	}
	if cached(with("p", "k", admit), at) {
		t.Error("empty, but cached")
	}
	reg.Requests()
	if !cached(with("p", "k", admit), at) || len(reg.Requests()) > 0 {
		t.Error("a second client asks again")
	}
	for name, c := range map[string]*oci.Client{"policy": with("q", "k", admit), "key": with("p", "other", admit)} {
		if cached(c, at) {
			t.Errorf("another %s is not asked", name)
		}
	}
	other := ref(t, reg, "c/d:1").At(at.Digest)
	if cached(with("p", "k", admit), other) {
		t.Error("another repository is not asked")
	}
	for _, r := range reg.Requests() {
		if strings.HasPrefix(r, "GET /v2/a/b/blobs/") {
			t.Errorf("bytes that are here are read again: %s", r)
		}
	}
	never := func(context.Context, *oci.Subject) error { return errors.New("no signature") }
	if _, err := with("strict", "k", never).Pull(t.Context(), at); !errors.Is(err, oci.ErrRefused) || !strings.Contains(err.Error(), "no signature") {
		t.Errorf("what was admitted before is admitted: %v", err)
	}
}

// While a registry is unreachable, a tag has its last known digest, and the pull reports that.
func TestCache_ServesWhileTheRegistryIsAway(t *testing.T) {
	reg := ocitest.New(t)
	dir := t.TempDir()
	cache := func(o *oci.Options) { o.CacheDir = dir }
	r := ref(t, reg, "a/b:1")
	push(t, client(reg), r, module(1, 1000))
	if _, err := client(reg, cache).Pull(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	at := push(t, client(reg), r, module(2, 1000))
	if a, err := client(reg, cache).Pull(t.Context(), r); err != nil || a.Digest != at.Digest {
		t.Fatalf("a moved tag: %v", err)
	}
	reg.Use(ocitest.Status(503, "X", "Retry-After", "100"))
	a, err := client(reg, cache).Pull(t.Context(), r)
	if err != nil || a.Digest != at.Digest || !errors.Is(a.Stale, oci.ErrUnreachable) {
		t.Errorf("away: %v", err)
	}
	for _, layer := range []ocitest.Layer{ocitest.Status(404, "MANIFEST_UNKNOWN"), ocitest.Status(401, "UNAUTHORIZED")} {
		reg.Use(layer) // it answers: the tag is gone, or not for this user
		if _, err := client(reg, cache).Pull(t.Context(), r); err == nil {
			t.Error("a registry that says no is not heard")
		}
	}
}

// Damage to any file of the cache costs a pull, and no more.
func TestCache_SurvivesDamage(t *testing.T) {
	reg := ocitest.New(t)
	at := push(t, client(reg), ref(t, reg, "a/b:1"), module(1, 1000))
	dir := t.TempDir()
	pull := func() {
		t.Helper()
		if a, err := client(reg, func(o *oci.Options) { o.CacheDir = dir }).Pull(t.Context(), at); err != nil || !bytes.Equal(a.Wasm, module(1, 1000)) {
			t.Fatal(err)
		}
	}
	pull()
	var files []string
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 { // layout, index, lock, manifest, layer
		t.Errorf("%v", files)
	}
	for _, path := range files {
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, is := range [][]byte{nil, was[:len(was)/2], append([]byte("x"), was...), []byte("null"), []byte(`{"manifests":[{}]}`)} {
			if err := os.WriteFile(path, is, 0o600); err != nil {
				t.Fatal(err)
			}
			pull()
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pull()
	}
}

// Processes that share a directory lose nothing, and it stays within its limit: the last used
// modules stay.
func TestCache_IsSharedAndBounded(t *testing.T) {
	reg := ocitest.New(t)
	dir := t.TempDir()
	const modules, size, most = 12, 10_000, 60_000
	cache := func(o *oci.Options) { o.CacheDir, o.CacheSize = dir, most }
	var refs []oci.Ref
	for i := range modules {
		refs = append(refs, push(t, client(reg), ref(t, reg, "a/b:"+itoa(i)), module(uint64(i), size)))
	}
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			c := client(reg, cache) // as a process: it has nothing in common but the directory
			rnd := rand.New(rand.NewPCG(uint64(p), 1))
			for range 30 {
				i := rnd.IntN(modules)
				if a, err := c.Pull(t.Context(), refs[i]); err != nil || !bytes.Equal(a.Wasm, module(uint64(i), size)) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var total int64
	if err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(_ string, d os.DirEntry, err error) error {
		if info, infoErr := d.Info(); infoErr == nil && !d.IsDir() {
			total += info.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if total > most || total < size {
		t.Errorf("%d bytes", total)
	}
	for range 2 { // the one of the last pull is there
		a, err := client(reg, cache).Pull(t.Context(), refs[0])
		if err != nil {
			t.Fatal(err)
		}
		refs[0] = a.Ref
	}
	if a, err := client(reg, cache).Pull(t.Context(), refs[0]); err != nil || !a.Cached {
		t.Errorf("%v", err)
	}
}

// Verify sees the artifacts attached to the manifest, with and without the registry's API for them,
// and no others.
func TestVerify_SeesWhatIsAttached(t *testing.T) {
	const kind = "application/vnd.test.signature"
	for name, layer := range map[string]ocitest.Layer{
		"api": ocitest.On("", "/none", nil), "tag": ocitest.On(http.MethodGet, "/referrers/", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { http.NotFound(w, nil) }),
	} {
		reg := ocitest.New(t, layer)
		c := client(reg)
		at := push(t, c, ref(t, reg, "a/b:1"), module(1, 100))
		for _, a := range []oci.Attachment{
			{Type: kind, Annotations: map[string]string{"k": "v"}, Blobs: []oci.Blob{{MediaType: "text/x", Content: []byte("sig"), Annotations: map[string]string{"n": "1"}}}},
			{Type: "application/vnd.test.other", Blobs: []oci.Blob{{MediaType: "text/x", Content: []byte("no")}}},
		} {
			if _, err := c.Attach(t.Context(), at, a); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var got []oci.Attachment
		var old *oci.Attachment
		v := client(reg, func(o *oci.Options) {
			o.Verify = func(ctx context.Context, s *oci.Subject) (err error) {
				if s.Digest != at.Digest || string(digest.FromBytes(s.Manifest)) != s.Digest {
					t.Errorf("%+v", s)
				}
				if got, err = s.Attached(ctx, kind); err == nil {
					old, err = s.Tagged(ctx, "sig")
				}
				return err
			}
		})
		if _, err := v.Pull(t.Context(), at); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got) != 1 || got[0].Annotations["k"] != "v" || len(got[0].Blobs) != 1 || string(got[0].Blobs[0].Content) != "sig" || got[0].Blobs[0].Annotations["n"] != "1" || old != nil {
			t.Errorf("%s: %+v, %v", name, got, old)
		}
	}
}
