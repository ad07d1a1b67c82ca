// SPDX-License-Identifier: Apache-2.0

// Package oci stores modules in OCI registries. It pushes them as artifacts of the CNCF's layout
// for WebAssembly, and pulls them by the chain tag -> digest of the manifest -> digest of the layer
// -> bytes, each link of which is checked. A tag is resolved once. docs/registry.md is for users.
package oci

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/wasmctl/wasmctl/internal/failure"
)

// Default limits of Options.
const (
	DefaultMaxSize   = 64 << 20 // bytes of a module, like in package host
	DefaultCacheSize = 1 << 30  // bytes of all modules in the cache
	DefaultTimeout   = 2 * time.Minute

	maxManifest = 1 << 20
	maxTags     = 10_000
)

// Options configure a Client. With zero Options, it asks registries anonymously and has no cache.
type Options struct {
	// CacheDir is the directory of the cache. If empty, there is no cache. Processes may share it.
	// CacheKey authenticates the admitted modules. If it is empty and Verify is set, each process
	// verifies again.
	CacheDir string
	CacheKey []byte
	// CacheSize limits the cache, MaxSize a module, and Timeout an operation.
	CacheSize, MaxSize int64
	Timeout            time.Duration

	// Insecure are hosts, with their ports, for which plain HTTP, and TLS without verification, are
	// permitted.
	Insecure []string
	// Roots, if not nil, replaces the system's certificate authorities.
	Roots *x509.CertPool
	// Transport, if not nil, replaces a transport with Roots. Its dialer connects to any address.
	Transport *http.Transport
	// Lane, if not nil, is shared by the Clients of a tenant, which must have the same Insecure, Transport and Guard.
	Lane *Lane
	// Guard, if not nil, restricts the addresses of registries.
	Guard *Guard
	// Credentials returns the credentials to try for a repository, in order. An empty list means
	// anonymous access. Its error ends the operation.
	Credentials func(ctx context.Context, host, repository string) ([]Credential, error)

	// Verify, if not nil, admits or refuses a manifest before its module is read. An admission is
	// remembered for the same PolicyID, which must identify everything that the answer depends on,
	// including the user, if not all users may have the same modules.
	Verify   func(ctx context.Context, s *Subject) error
	PolicyID string

	// Transferred, if not nil, counts the bytes of all bodies that are sent and received.
	Transferred *atomic.Int64
	// Logger receives messages about delays that are not errors. If nil, they are discarded.
	Logger *slog.Logger
}

// Client pulls and pushes modules. It is safe for concurrent use.
type Client struct {
	opts  Options
	http  *transport
	cache *cache // nil without a cache
}

// New returns a Client.
func New(o Options) *Client {
	o.MaxSize, o.CacheSize = cmp.Or(o.MaxSize, DefaultMaxSize), cmp.Or(o.CacheSize, DefaultCacheSize)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Credentials == nil {
		o.Credentials = func(context.Context, string, string) ([]Credential, error) { return nil, nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{opts: o, http: newTransport(&o)}
	if o.CacheDir != "" {
		key := o.CacheKey
		if key == nil && o.Verify != nil {
			key = []byte(rand.Text()) // only for this process
		}
		c.cache = &cache{filepath.Clean(o.CacheDir), o.PolicyID, key, o.CacheSize}
	}
	return c
}

// Insecure reports whether a registry may be used without verified TLS.
func (c *Client) Insecure(host string) bool { return slices.Contains(c.opts.Insecure, host) }

// with calls use with the repository of a reference, with each of its credentials until one is
// accepted. Its error is already explained.
func (c *Client) with(ctx context.Context, r Ref, use func(*remote.Repository) error) error {
	tries, err := c.opts.Credentials(ctx, r.Host, r.Repository)
	switch {
	case errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrUnreachable):
		return err
	case err != nil:
		return as(ErrUnauthorized, fmt.Errorf("credentials for %s: %w", r.Host, err))
	}
	if len(tries) == 0 {
		tries = []Credential{{}} // without configuration, access is anonymous
	}
	plain := c.http.isPlain(ctx, r.Host)
	var errs []error
	for _, try := range tries {
		repo, v := c.remote(r, try, plain)
		err := use(repo)
		if err == nil {
			return nil
		}
		err = explain(r, err)
		if v.away {
			err = failure.As(err, errElsewhere)
		}
		if !errors.Is(err, ErrUnauthorized) {
			return err
		}
		if try.Source != "" {
			err = as(ErrUnauthorized, fmt.Errorf("%w (with %v)", err, try))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// remote returns a repository with a credential, and the visit that sends its requests.
func (c *Client) remote(r Ref, with Credential, plain bool) (*remote.Repository, *visit) {
	at := registry.Reference{Registry: r.Host, Repository: r.Repository}
	v := &visit{transport: c.http, home: at.Host()}
	return &remote.Repository{
		Reference: at, PlainHTTP: plain, MaxMetadataBytes: maxManifest, TagListPageSize: 1000, SkipReferrersGC: true,
		Client: &auth.Client{
			Client: v.client(), Cache: auth.NewCache(), Header: http.Header{"User-Agent": {"wasmctl"}},
			Credential: func(context.Context, string) (auth.Credential, error) { return with.oras(), nil },
		},
	}, v
}

// Module is a module in a registry. It implements wasmctl.Module.
type Module struct {
	client  *Client
	reading chan struct{} // has room for one: the call of Read that may pull

	mu    sync.Mutex
	ref   Ref    // with its digest, once it is known; guarded by mu
	proof []byte // as an Artifact's; guarded by mu
}

// Module returns the module of a reference. The first read resolves its tag, and all reads return
// the same module.
func (c *Client) Module(r Ref) *Module {
	return &Module{client: c, reading: make(chan struct{}, 1), ref: r}
}

// Read implements wasmctl.Module.
func (m *Module) Read(ctx context.Context) ([]byte, error) {
	select {
	case m.reading <- struct{}{}:
		defer func() { <-m.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	a, err := m.client.Pull(ctx, m.Ref())
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ref, m.proof = a.Ref, a.Proof
	return a.Wasm, nil
}

// Proof implements wasmctl.Signed. It is nil before the first Read.
func (m *Module) Proof() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proof
}

// String returns the reference, with its digest once it is known.
func (m *Module) String() string { return m.Ref().String() }

// Ref returns the reference, with its digest once it is known.
func (m *Module) Ref() Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ref
}

// Artifact is a module that was pulled.
type Artifact struct {
	// Ref has the digest, and the tag from which it was resolved.
	Ref Ref
	// Digest is the manifest's digest, which references pin and signatures sign. Layer is the
	// digest of the module itself.
	Digest, Layer string
	Annotations   map[string]string
	Wasm          []byte
	// Proof is the proof that Verify has stored with the admission. Signed stores a
	// signature.Proof.
	Proof []byte
	// Cached means that at most the tag's digest was read from the registry. Stale, if not nil, is
	// the reason why not even that was read: the tag may have moved.
	Cached bool
	Stale  error
}

func (r Ref) digest() digest.Digest { return digest.Digest(r.Digest) }
