// SPDX-License-Identifier: Apache-2.0

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

// Module is a source of the bytes of a WebAssembly module.
type Module interface {
	// Read returns the bytes. It is called at each start of a controller, and returns early if
	// ctx ends.
	Read(ctx context.Context) ([]byte, error)
	// String describes the module for people. Its last part without extension is the name
	// of a controller that has no other name.
	String() string
}

// File is a module in a file, which may be compressed with gzip.
type File string

// Read implements Module. The error matches ErrModule.
func (f File) Read(context.Context) ([]byte, error) {
	return f.unpack(f.read())
}

// ReadSum is like Read, but also returns the sha256 of the file's content, which may be
// compressed.
func (f File) ReadSum() (wasm []byte, sum [sha256.Size]byte, err error) {
	content, err := f.read()
	if err == nil {
		sum = sha256.Sum256(content)
	}
	wasm, err = f.unpack(content, err)
	return wasm, sum, err
}

// unpack returns the module in a file's content, or the error of reading it.
func (f File) unpack(content []byte, err error) ([]byte, error) {
	var wasm []byte
	if err == nil {
		wasm, err = load.Unpack(content)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the text of the error below has the path
	}
	if err != nil {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: %w", string(f), err))
	}
	return wasm, nil
}

// read returns the content of the file, unless it exceeds the maximum size of a module.
func (f File) read() ([]byte, error) {
	info, err := os.Stat(string(f))
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory; name the .wasm file")
	case info.Size() > load.MaxModuleSize:
		return nil, fmt.Errorf("%s exceeds the maximum size of a module (%s)", humanize.Bytes(info.Size()), humanize.Bytes(load.MaxModuleSize))
	}
	return os.ReadFile(string(f))
}

// String implements Module.
func (f File) String() string { return string(f) }

// Bytes returns a module with these bytes.
func Bytes(wasm []byte) Module { return bytesModule{wasm} }

type bytesModule struct{ wasm []byte }

func (b bytesModule) Read(context.Context) ([]byte, error) { return b.wasm, nil }
func (b bytesModule) String() string                       { return humanize.Digest(load.DigestOf(b.wasm)) }

// local is implemented by modules whose bytes are on this machine.
type local interface{ local() }

func (File) local()        {}
func (bytesModule) local() {}

// NameOf returns the default name of a module: its file's name without extensions, or the
// last part of its repository.
func NameOf(m Module) string {
	name := m.String()
	if oci.IsRef(name) {
		if ref, err := oci.Parse(name); err == nil {
			return ref.Name()
		}
	}
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".tar")
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Native is a reconciler in Go, which uses the same watches, cache, queue and metrics as
// modules.
type Native struct {
	// Name is the name of the controller.
	Name string
	// For is the kind to reconcile. Changes of the kinds in Owns and Watches trigger
	// reconciles, as in a module's manifest.
	For           abi.Watch
	Owns, Watches []abi.Watch
	// Install is the command that installs the CRD of For if it is missing (default:
	// kubectl apply -f crd.yaml).
	Install string
	// Unpooled excludes the reconciles from those that Options.Workers bounds. It suits reconcilers
	// that mostly wait.
	Unpooled bool
	// Finalizer, if not empty, is set on objects until Finalize succeeds for them.
	Finalizer string
	// Reconcile reconciles one object. An error is retried with back-off; if it wraps an
	// *abi.ResultError, its class decides.
	Reconcile func(ctx context.Context, r *Request) (Action, error)
	// Finalize cleans up after an object that is being deleted. It is required if Finalizer
	// is set.
	Finalize func(ctx context.Context, r *Request) (Action, error)
	// Map returns the objects that a change of a watched object affects, for watches whose
	// Map is "func". After an error the change is retried with back-off.
	Map func(ctx context.Context, e *Event) ([]abi.Key, error)
	// Filter reports whether a change is passed on, for watches whose Predicates have
	// "func". After an error the change is passed on. Map and Filter are called for only
	// one change of a watch at a time.
	Filter func(ctx context.Context, e *Event) (bool, error)
	// Moved, if not nil, is called when objects move to another replica, after their last
	// run. It must return only when all work of the reconciler for these objects outside of
	// its runs has ended.
	Moved func(has func(uid string) bool)
}

// Action determines when an object runs again. The zero Action waits for a change.
type Action = abi.Action

// Add starts a controller with a native reconciler. Its options are those of a module;
// fields about modules have no effect.
func (rt *Runtime) Add(ctx context.Context, n Native, o ControllerOptions) (*Controller, error) {
	o.Name = n.Name
	return rt.load(ctx, func() (Module, ControllerOptions, error) { return Bytes(nil), o, nil }, &n)
}

func (n *Native) engine() *engine.Native {
	m := &abi.Manifest{Name: n.Name, For: &n.For, Owns: n.Owns, Watches: n.Watches, Finalizer: n.Finalizer}
	return &engine.Native{
		Manifest: m, Install: n.Install, Unpooled: n.Unpooled, Moved: n.Moved,
		Reconcile: onRequest(n.Reconcile), Finalize: onRequest(n.Finalize), Map: onEvent(n.Map), Filter: onEvent(n.Filter),
	}
}
