// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/logging"
)

// Registry reads modules from files, archives and registries. It is the only place that distinguishes them. It is
// safe for concurrent use.
type Registry struct {
	// Insecure are the hosts that need no verified TLS.
	Insecure []string
	// CA has the certificate authorities to trust in addition to those of the system.
	CA CA
	// VerifyKeys are files of public keys, one of which must have signed each module.
	VerifyKeys VerifyKeys
	// CacheDir is the value of --cache-dir: see the function CacheDir. Logger logs warnings. Both must be
	// set before the first use.
	CacheDir string
	Logger   *slog.Logger
	// Progress shows transfers. It may be nil.
	Progress *progress.Line

	once        sync.Once
	client      *oci.Client
	transferred atomic.Int64 // bytes

	mu    sync.Mutex
	known map[string]*oci.Module // by reference; guarded by mu
}

// Bind adds the flags to a command.
func (o *Registry) Bind(f *pflag.FlagSet) {
	f.Var(&o.CA, "registry-ca", "Trust registries whose certificate is signed by a certificate in this PEM `file`, in addition to the system's; repeatable")
	_ = f.SetAnnotation("registry-ca", cobra.BashCompFilenameExt, []string{"pem", "crt"})
	f.StringSliceVar(&o.Insecure, "insecure-registry", nil, "Allow plain HTTP, and TLS without verification, for the registry at this `host`[:port]; repeatable")
}

// BindVerify adds the flags that only apply to reading modules.
func (o *Registry) BindVerify(f *pflag.FlagSet) {
	f.StringArrayVar((*[]string)(&o.VerifyKeys), "verify-key", nil, "Refuse modules without a signature of the key in this PEM `file`; repeatable: one of the keys must have signed")
	_ = f.SetAnnotation("verify-key", cobra.BashCompFilenameExt, []string{"pub", "pem"}) // in a controllers file, the path is relative to that file
}

// Login returns the credentials of the user.
func Login() *oci.Login { return oci.UserLogin(os.Getenv) }

// Client returns the client of all registries.
func (o *Registry) Client() *oci.Client {
	o.once.Do(func() {
		options := o.Options()
		options.Credentials = Login().Credentials
		o.client = oci.New(options)
		o.known = map[string]*oci.Module{}
	})
	return o.client
}

// Options returns the options of a client without credentials.
func (o *Registry) Options() oci.Options {
	dir, _ := CacheDir(o.CacheDir) // with an error, there is no cache
	if o.Logger == nil {
		o.Logger, _ = logging.New(os.Stderr, "text", 0) // the format is known
	}
	options := oci.Options{Insecure: o.Insecure, Roots: o.CA.roots, MaxSize: load.MaxModuleSize, Logger: o.Logger, Transferred: &o.transferred}
	if dir != "" {
		options.CacheDir = filepath.Join(dir, "oci")
		options.CacheKey, _ = CacheKey() // with an error, the key is for this process only
	}
	switch p, err := o.VerifyKeys.Policy(); {
	case err != nil: // without the keys, no module can be verified
		options.PolicyID, options.Verify = "none", func(context.Context, *oci.Subject) error { return err }
	case p != nil:
		options.Require(*p)
	}
	return options
}

// Open returns the module of a path or a reference. The first read resolves the tag of a reference. All
// later reads in this process return the same module.
func (o *Registry) Open(module string) wasmctl.Module {
	if _, err := o.VerifyKeys.Policy(); err != nil {
		return unreadable{module, err}
	}
	switch {
	case oci.IsRef(module):
	case oci.IsArchive(module):
		return o.Client().ArchivedModule(module)
	case len(o.VerifyKeys) > 0:
		return unreadable{module, failure.Usage.Wrap(fmt.Errorf("module[%s]: --verify-key: a file has no signature; push and sign it, and name its reference, oci://HOST/REPOSITORY, or a file of wasmctl save", module))}
	default:
		return wasmctl.File(module)
	}
	ref, err := oci.Parse(module)
	if err != nil {
		return unreadable{module, err}
	}
	c := o.Client()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[module] == nil {
		o.known[module] = c.Module(ref)
	}
	return o.known[module]
}

// Read reads a module, and shows the progress of a pull.
func (o *Registry) Read(ctx context.Context, m wasmctl.Module) ([]byte, error) {
	if oci.IsRef(m.String()) {
		defer o.Transfer("pulling "+m.String(), 0).End()
	}
	return m.Read(ctx)
}

// Transfer shows the bytes that are transferred from now on. A total of 0 is unknown.
func (o *Registry) Transfer(what string, total int64) *progress.Task {
	o.transferred.Store(0)
	return o.Progress.StartCount(what, &o.transferred, total, progress.Bytes)
}

// Proof returns the proof of a module's signatures, or nil if there is none. The module must have been
// read.
func Proof(m wasmctl.Module) []byte {
	if s, ok := m.(wasmctl.Signed); ok {
		return s.Proof()
	}
	return nil
}

// Newest resolves a reference again. changed reports whether the result differs from the module that
// Open returns. After a call of Keep, Open returns the new module.
func (o *Registry) Newest(ctx context.Context, module string) (m *oci.Module, changed bool, err error) {
	ref, err := oci.Parse(module)
	if err != nil {
		return nil, false, err
	}
	c := o.Client()
	if ref, err = c.Resolve(ctx, ref); err != nil {
		return nil, false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := o.known[module]; k != nil && k.Ref().Digest == ref.Digest {
		return k, false, nil
	}
	return c.Module(ref), true, nil
}

// Keep makes Open return this module for a reference.
func (o *Registry) Keep(module string, m *oci.Module) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[module] = m
}

// unreadable is a module that cannot be read.
type unreadable struct {
	name string
	err  error
}

func (u unreadable) Read(context.Context) ([]byte, error) { return nil, u.err }
func (u unreadable) String() string                       { return u.name }

// ModuleName returns the default name of a module: the name of its file without extensions, or the last
// part of its repository.
func ModuleName(module string) string { return wasmctl.NameOf(unreadable{name: module}) }
