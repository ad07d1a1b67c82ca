package wasmctl

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Module is where the bytes of a WebAssembly module come from.
type Module interface {
	// Read returns the bytes. It is called for each start of a controller, and ends with ctx.
	Read(ctx context.Context) ([]byte, error)
	// String names the module for people. Its last part without extension names a
	// controller that has no other name.
	String() string
}

// File is the Module in a file, which may be compressed with gzip.
type File string

// Read implements Module. The error matches ErrModule.
func (f File) Read(context.Context) ([]byte, error) {
	return f.unpack(f.read())
}

// ReadSum is Read, and the sha256 of what the file has: of the module, or of the
// compressed one.
func (f File) ReadSum() (wasm []byte, sum [sha256.Size]byte, err error) {
	content, err := f.read()
	if err == nil {
		sum = sha256.Sum256(content)
	}
	wasm, err = f.unpack(content, err)
	return wasm, sum, err
}

// unpack returns the module that was read, or why there is none.
func (f File) unpack(content []byte, err error) ([]byte, error) {
	var wasm []byte
	if err == nil {
		wasm, err = load.Unpack(content)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the path stands before it
	}
	if err != nil {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: %w", string(f), err))
	}
	return wasm, nil
}

// read reads no more than a module may have.
func (f File) read() ([]byte, error) {
	info, err := os.Stat(string(f))
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory; name the .wasm file")
	case info.Size() > load.MaxModuleSize:
		return nil, fmt.Errorf("%s is more than a module may have (%s)", humanize.Bytes(info.Size()), humanize.Bytes(load.MaxModuleSize))
	}
	return os.ReadFile(string(f))
}

// String implements Module.
func (f File) String() string { return string(f) }

// Bytes is the Module with these bytes.
func Bytes(wasm []byte) Module { return bytesModule{wasm} }

type bytesModule struct{ wasm []byte }

func (b bytesModule) Read(context.Context) ([]byte, error) { return b.wasm, nil }
func (b bytesModule) String() string                       { return humanize.Digest(load.DigestOf(b.wasm)) }

// local is implemented by modules whose bytes are on this machine.
type local interface{ local() }

func (File) local()        {}
func (bytesModule) local() {}

// NameOf is the name of a module that has no other: its file's, without extensions,
// or the last part of its repository.
func NameOf(m Module) string {
	name := m.String()
	if oci.IsRef(name) {
		if ref, err := oci.Parse(name); err == nil {
			return ref.Name()
		}
	}
	base := strings.TrimSuffix(filepath.Base(name), ".gz")
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Native is a reconciler in Go, on the same watches, cache, queue and metrics as
// modules.
type Native struct {
	// Name is the controller's.
	Name string
	// For is the kind to reconcile, Owns and Watches are others that lead to
	// reconciles, as in a module's manifest.
	For           abi.Watch
	Owns, Watches []abi.Watch
	// Install is the command that installs the CRD of For, where that is missing
	// (default: kubectl apply -f crd.yaml).
	Install string
	// Finalizer, if not empty, is held by objects until Finalize succeeds for them.
	Finalizer string
	// Reconcile reconciles one object. An error is retried with back-off; one that
	// wraps an *abi.ResultError as its class says.
	Reconcile func(ctx context.Context, r *Request) (Action, error)
	// Finalize cleans up after an object that is being deleted; needed with
	// Finalizer.
	Finalize func(ctx context.Context, r *Request) (Action, error)
	// Map returns the objects that a change of a watched object affects, for watches whose Map
	// is "func". After an error the change is tried again, with back-off.
	Map func(ctx context.Context, e *Event) ([]abi.Key, error)
	// Filter reports whether a change is passed on, for watches whose Predicates have "func".
	// After an error it is. Map and Filter are called for one change of a watch at a time.
	Filter func(ctx context.Context, e *Event) (bool, error)
	// Moved, if not nil, is called where replicas share the objects and some go to
	// another one, after their last run. It returns when all that the reconciler does
	// for them beside its runs has ended.
	Moved func(has func(uid string) bool)
}

// Action is what follows a run. The zero Action awaits a change.
type Action = abi.Action

// Add starts a controller with a native reconciler. Its options are those of a
// module; the fields that are about modules do nothing.
func (rt *Runtime) Add(ctx context.Context, n Native, o ControllerOptions) (*Controller, error) {
	o.Name, o.Grants = n.Name, Grant{Everything: true} // it is the program's own
	return rt.load(ctx, func() (Module, ControllerOptions, error) { return Bytes(nil), o, nil }, &n)
}

func (n *Native) engine() *engine.Native {
	m := &abi.Manifest{Name: n.Name, For: &n.For, Owns: n.Owns, Watches: n.Watches, Finalizer: n.Finalizer}
	return &engine.Native{
		Manifest: m, Install: n.Install, Moved: n.Moved,
		Reconcile: onRequest(n.Reconcile), Finalize: onRequest(n.Finalize), Map: onEvent(n.Map), Filter: onEvent(n.Filter),
	}
}
