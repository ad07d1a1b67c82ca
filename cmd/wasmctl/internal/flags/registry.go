package flags

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/logging"
)

// Registry reads modules, of files and of registries. It is the only place that
// knows which is which. It is safe for concurrent use.
type Registry struct {
	// Insecure are hosts that may be spoken to without verified TLS.
	Insecure []string
	// VerifyKeys are files of public keys, one of which must have signed each module.
	VerifyKeys VerifyKeys
	// CacheDir keeps modules; "" is the user's, "none" none. Logger hears what is
	// worth a warning. Both are set before the first use.
	CacheDir string
	Logger   *slog.Logger

	once   sync.Once
	client *oci.Client

	mu    sync.Mutex
	known map[string]*oci.Module // by reference; guarded by mu
}

// Bind adds the flags to a command.
func (o *Registry) Bind(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Insecure, "insecure-registry", nil, "Allow plain HTTP, and TLS without verification, for the registry at this `host`[:port]; repeatable")
}

// BindVerify adds the flags that are about reading modules only.
func (o *Registry) BindVerify(f *pflag.FlagSet) {
	f.StringArrayVar((*[]string)(&o.VerifyKeys), "verify-key", nil, "Refuse modules that the key in this PEM `file` has not signed; repeatable: one of the keys must have")
	_ = f.SetAnnotation("verify-key", cobra.BashCompFilenameExt, []string{"pub", "pem"}) // in a file, it is relative to that
}

// Login are the credentials of the user.
func Login() *oci.Login { return oci.UserLogin(os.Getenv) }

// Client is the client of all registries.
func (o *Registry) Client() *oci.Client {
	o.once.Do(func() {
		options := o.Options()
		options.Credentials = Login().Credentials
		o.client = oci.New(options)
		o.known = map[string]*oci.Module{}
	})
	return o.client
}

// Options are those of a client with no credentials.
func (o *Registry) Options() oci.Options {
	dir := o.CacheDir
	if dir == "" {
		if base, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(base, "wasmctl", "modules")
		}
	}
	if dir == "none" {
		dir = ""
	}
	if o.Logger == nil {
		o.Logger, _ = logging.New(os.Stderr, "text", 0) // the format is known
	}
	options := oci.Options{Insecure: o.Insecure, MaxSize: load.MaxModuleSize, Logger: o.Logger}
	if dir != "" {
		options.CacheDir = filepath.Join(dir, "oci")
		options.CacheKey, _ = CacheKey() // an error leaves a key of this process
	}
	switch p, err := o.VerifyKeys.Policy(); {
	case err != nil: // what should be verified is not admitted without
		options.PolicyID, options.Verify = "none", func(context.Context, *oci.Subject) error { return err }
	case p != nil:
		options.Require(*p)
	}
	return options
}

// Open returns the module of a path or a reference. The tag of a reference is
// resolved by the first read: all others of this process give the same module.
func (o *Registry) Open(module string) wasmctl.Module {
	if _, err := o.VerifyKeys.Policy(); err != nil {
		return unreadable{module, err}
	}
	switch {
	case oci.IsRef(module):
	case len(o.VerifyKeys) > 0:
		return unreadable{module, failure.Usage.Wrap(fmt.Errorf("module[%s]: --verify-key: a file has no signature; push and sign it, and name its reference, oci://HOST/REPOSITORY", module))}
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

// Proof shows who has signed a module that has been read; nil: nothing does.
func Proof(m wasmctl.Module) []byte {
	if s, ok := m.(wasmctl.Signed); ok {
		return s.Proof()
	}
	return nil
}

// Newest asks the registry what a reference means now. Changed says that this is not
// the module that Open returns; Keep makes it that.
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

// Keep makes a module the one that Open returns for a reference.
func (o *Registry) Keep(module string, m *oci.Module) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[module] = m
}

// unreadable is a module that has no place.
type unreadable struct {
	name string
	err  error
}

func (u unreadable) Read(context.Context) ([]byte, error) { return nil, u.err }
func (u unreadable) String() string                       { return u.name }

// ModuleName is the name of a module that has no other: its file's, without
// extensions, or the last part of its repository.
func ModuleName(module string) string { return wasmctl.NameOf(unreadable{name: module}) }
