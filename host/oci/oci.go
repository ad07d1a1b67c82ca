// Package oci keeps modules in OCI registries: it pushes them as artifacts of the
// CNCF's layout for WebAssembly, and pulls them by the chain tag -> digest of the
// manifest -> digest of the layer -> bytes, each link of which is checked. A tag is
// looked at once. docs/registry.md is for users.
package oci

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// Bounds, where Options say nothing.
const (
	DefaultMaxSize   = 64 << 20 // bytes of a module; as package host
	DefaultCacheSize = 1 << 30  // bytes of all modules in the cache
	DefaultTimeout   = 2 * time.Minute

	maxManifest = 1 << 20
	maxTags     = 10_000
)

// Options are those of a Client. The zero Options ask registries anonymously, and
// keep nothing.
type Options struct {
	// CacheDir keeps modules below this directory; "" keeps none. Processes may share
	// it. CacheKey authenticates what was admitted; without it, and with Verify, each
	// process verifies again.
	CacheDir string
	CacheKey []byte
	// CacheSize bounds the cache, MaxSize a module, Timeout an operation.
	CacheSize, MaxSize int64
	Timeout            time.Duration

	// Insecure are hosts, with their ports, that may be spoken to by plain HTTP, or
	// by TLS without verification.
	Insecure []string
	// Transport, if not nil, is used instead of one with the system's roots.
	Transport *http.Transport
	// Credentials returns what to try for a repository, in this order; none means
	// anonymously. Its error ends the operation.
	Credentials func(ctx context.Context, host, repository string) ([]Credential, error)

	// Verify, if not nil, admits or refuses a manifest before its module is read.
	// What it has admitted is not asked again while PolicyID is the same: this names
	// everything that the answer depends on, and who asks, if not all may have the same
	// modules.
	Verify   func(ctx context.Context, s *Subject) error
	PolicyID string

	// Logger hears of what costs time but is no error: nil hears nothing.
	Logger *slog.Logger
}

// Client pulls and pushes modules. It is safe for concurrent use.
type Client struct {
	opts  Options
	http  *transport
	cache *cache // nil without
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
	c := &Client{opts: o, http: newTransport(o.Transport, o.Insecure)}
	if o.CacheDir != "" {
		key := o.CacheKey
		if key == nil && o.Verify != nil {
			key = []byte(rand.Text()) // of this process alone
		}
		c.cache = &cache{filepath.Clean(o.CacheDir), o.PolicyID, key, o.CacheSize}
	}
	return c
}

// Insecure reports whether a registry may be spoken to without verified TLS.
func (c *Client) Insecure(host string) bool { return slices.Contains(c.opts.Insecure, host) }

// with calls use with the repository of a reference, with each of its credentials
// until one is accepted. Its error has been explained.
func (c *Client) with(ctx context.Context, r Ref, use func(*remote.Repository) error) error {
	tries, err := c.opts.Credentials(ctx, r.Host, r.Repository)
	switch {
	case errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrUnreachable):
		return err
	case err != nil:
		return as(ErrUnauthorized, fmt.Errorf("credentials for %s: %w", r.Host, err))
	}
	if len(tries) == 0 {
		tries = []Credential{{}} // nothing is configured: that is anonymous
	}
	plain := c.http.isPlain(ctx, r.Host)
	var errs []error
	for _, try := range tries {
		err := use(c.remote(r, try, plain))
		if err == nil {
			return nil
		}
		err = explain(r, err)
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

// remote is a repository, asked with a credential.
func (c *Client) remote(r Ref, with Credential, plain bool) *remote.Repository {
	return &remote.Repository{
		Reference: registry.Reference{Registry: r.Host, Repository: r.Repository},
		PlainHTTP: plain, MaxMetadataBytes: maxManifest, TagListPageSize: 1000, SkipReferrersGC: true,
		Client: &auth.Client{
			Client: c.http.client(), Cache: auth.NewCache(), Header: http.Header{"User-Agent": {"wasmctl"}},
			Credential: func(context.Context, string) (auth.Credential, error) { return with.oras(), nil },
		},
	}
}

// Module is a module in a registry. It implements wasmctl.Module.
type Module struct {
	client *Client

	mu    sync.Mutex
	ref   Ref    // with its digest, once it is known; guarded by mu
	proof []byte // as an Artifact's; guarded by mu
}

// Module returns what a reference names. Its tag is resolved when it is read first;
// all reads give the same module.
func (c *Client) Module(r Ref) *Module { return &Module{client: c, ref: r} }

// Read implements wasmctl.Module.
func (m *Module) Read() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.client.Pull(context.Background(), m.ref)
	if err != nil {
		return nil, err
	}
	m.ref, m.proof = a.Ref, a.Proof
	return a.Wasm, nil
}

// Proof implements wasmctl.Signed: it is nil before the first Read.
func (m *Module) Proof() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proof
}

// String is the reference, with its digest once it is known.
func (m *Module) String() string { return m.Ref().String() }

// Ref is the reference, with its digest once it is known.
func (m *Module) Ref() Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ref
}

// Artifact is a module as it was pulled.
type Artifact struct {
	// Ref has the digest, and the tag that it was resolved by.
	Ref Ref
	// Digest is the manifest's: what a reference pins, and what is signed. Layer is
	// the module's own.
	Digest, Layer string
	Annotations   map[string]string
	Wasm          []byte
	// Proof is what Verify has kept when it admitted the module; Signed keeps a
	// signature.Proof.
	Proof []byte
	// Cached says that nothing was read from the registry but, at most, what the tag
	// means. Stale, if not nil, says why even that was not: the tag may have moved.
	Cached bool
	Stale  error
}

func (r Ref) digest() digest.Digest { return digest.Digest(r.Digest) }
