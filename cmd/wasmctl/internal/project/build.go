// SPDX-License-Identifier: Apache-2.0

// Package project creates and builds the source of a module, for wasmctl new and wasmctl build.
// Only this package knows the flags of each toolchain.
package project

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// Options configure a build. The zero value builds the project in the folder, and writes the module
// next to its source.
type Options struct {
	// Toolchain overrides the project file. If both are empty, the files in the folder decide.
	Toolchain Toolchain
	// Output is the file to write. If empty, it is the file that the project file names, and
	// otherwise NAME.wasm in the folder.
	Output string
	// SDK is a checkout of wasmctl, whose stand-in for controller-runtime is used for operators. If
	// empty, Release is the version of the stand-in. If both are empty, it comes from the checkout
	// that this wasmctl was built from.
	SDK, Release string
	// Main is the input of an operator's main. It overrides that of the project file.
	Main operator.Main
	// Go are flags for go build. They override those of the project file, and these those of GOFLAGS.
	Go GoFlags
	// Roles are files with the roles that the program is deployed with. Objects are files with the
	// objects that main of an operator sees. They are added to those of the project file.
	Roles, Objects []string
	// Files are the files of the module, each as PATH=FILE. Namespace is the content of the service
	// account's file. They override those of the project file.
	Files     []string
	Namespace string
	// CacheDir is the cache of compiled code. A host with the same CacheKey can use its entries. If
	// empty, the compiled code is not stored.
	CacheDir string
	CacheKey []byte
	// Stderr receives the compiler's output. If nil, the output is discarded.
	Stderr io.Writer
}

// Result describes a module that was built.
type Result struct {
	// File is the path of the written file.
	File string `json:"file"`
	// Toolchain is the toolchain that built it, and Version is its own description.
	Toolchain Toolchain `json:"toolchain"`
	Version   string    `json:"version"`
	// Digest is "sha256:" and the hash of the file, and Size is its size in bytes.
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Described is the module's description of itself, which is in the file.
	Described
	// Changed is false if the file already had these bytes. It was then not written.
	Changed bool `json:"changed"`
	// Took is the duration of the build.
	Took time.Duration `json:"took"`
}

// builder compiles with one toolchain.
type builder interface {
	// version returns the toolchain's description of itself. The error matches ErrNoToolchain and
	// explains how to get the toolchain.
	version(ctx context.Context) (string, error)
	// name returns the name of the project.
	name() string
	// compile writes the module's bytes to a file.
	compile(ctx context.Context, file string, stderr io.Writer) error
}

// Build compiles the project in dir and writes its manifest into the module. The same source and
// toolchain give the same bytes, whatever the path of dir. The file is replaced only after a
// successful build. The error matches ErrNoProject, ErrNoToolchain or load.ErrInvalidModule. The
// compiler's messages go to Options.Stderr.
func Build(ctx context.Context, dir string, o Options) (Result, error) {
	started := time.Now()
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	b, files, more, res, err := prepare(ctx, dir, o)
	if err != nil {
		return res, err
	}
	tmp, err := os.MkdirTemp("", "wasmctl-build-*")
	if err != nil {
		return res, fmt.Errorf("project[%s]: %w", dir, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	raw := filepath.Join(tmp, "module.wasm")
	if err := b.compile(ctx, raw, o.Stderr); err != nil {
		return res, fmt.Errorf("project[%s]: %w", dir, err)
	}
	wasm, err := os.ReadFile(raw)
	if err != nil {
		return res, fmt.Errorf("project[%s]: %w", dir, err)
	}
	if t, ok := b.(*tinyGoProject); ok && t.env != nil { // a different version of Go than at first
		if res.Version, err = t.version(ctx); err != nil {
			return res, fmt.Errorf("project[%s]: %w", dir, err)
		}
	}
	if len(files) > 0 {
		if wasm, err = load.WithFiles(wasm, files); err != nil {
			return res, fmt.Errorf("project[%s]: %w", dir, err)
		}
	}
	if err := finish(ctx, wasm, host.Config{Name: b.name(), Code: load.Options{CacheDir: o.CacheDir, CacheKey: o.CacheKey}}, more, &res); err != nil {
		if _, ok := b.(*operatorProject); ok {
			err = helpMain(err)
		}
		return res, err
	}
	res.Took = time.Since(started)
	return res, nil
}

// prepare determines source, toolchain, files, requests and target of a build.
func prepare(ctx context.Context, dir string, o Options) (b builder, files map[string][]byte, more requests, res Result, err error) {
	found, err := find(dir)
	if err != nil {
		return nil, nil, more, res, err
	}
	file, err := readFile(dir)
	if err != nil {
		return nil, nil, more, res, err
	}
	b, t, err := choose(dir, found, file, o)
	if err != nil {
		return nil, nil, more, res, err
	}
	more.file = file
	files, err = moduleFiles(dir, file, o)
	if _, ok := b.(*operatorProject); !ok && err == nil {
		if !o.Main.IsZero() || len(o.Objects) > 0 {
			return nil, nil, more, res, fmt.Errorf("project[%s]: %w for arguments after \"--\", --env, --objects or --without: they are for the main of an operator that uses controller-runtime", dir, ErrNoProject)
		}
		more.rights, err = operator.Rights(append(within(dir, file.Roles), o.Roles...))
	}
	if err == nil {
		res = Result{Toolchain: t, File: cmp.Or(o.Output, outputOf(dir, file, b))}
		res.Version, err = b.version(ctx)
	}
	if err != nil {
		return nil, nil, more, res, fmt.Errorf("project[%s]: %w", dir, err)
	}
	return b, files, more, res, nil
}

func outputOf(dir string, file File, b builder) string {
	return filepath.Join(dir, cmp.Or(file.Output, b.name()+".wasm"))
}

// Built returns the file that Build writes without options. The error matches ErrNoProject.
func Built(dir string) (string, error) {
	found, err := find(dir)
	if err != nil {
		return "", err
	}
	file, err := readFile(dir)
	if err != nil {
		return "", err
	}
	b, _, err := choose(dir, found, file, Options{})
	if err != nil {
		return "", err
	}
	return outputOf(dir, file, b), nil
}

// choose returns the builder for the folder.
func choose(dir string, found Toolchain, file File, o Options) (builder, Toolchain, error) {
	t := cmp.Or(o.Toolchain, Toolchain(file.Toolchain), found)
	if (t == Rust) != (found == Rust) {
		return nil, "", fmt.Errorf("project[%s]: %w with %s: its source is for %s", dir, ErrNoProject, t, found)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs) // compilers resolve links in paths
	}
	if err != nil {
		return nil, "", fmt.Errorf("project[%s]: %w", dir, err)
	}
	goFlags := o.Go.over(file.GoFlags)
	if t == Rust {
		if len(goFlags.Tags) > 0 || goFlags.LDFlags != "" {
			return nil, "", fmt.Errorf("project[%s]: %w for --tags or --ldflags: they are flags of go build", dir, ErrNoProject)
		}
		return &rustProject{dir: abs, target: cmp.Or(file.Target, DefaultTarget)}, t, nil
	}
	if t == TinyGo {
		return &tinyGoProject{dir: abs, flags: goFlags}, t, nil
	}
	p, err := operator.Find(abs)
	if err != nil {
		return nil, "", fmt.Errorf("project[%s]: %w", dir, err)
	}
	main := o.Main.Over(file.Main)
	if p != nil {
		p.Timeout = file.timeout()
		p.Roles, p.Objects = append(within(abs, file.Roles), o.Roles...), append(within(abs, file.Objects), o.Objects...)
		return &operatorProject{Project: p, sdk: operator.SDK{Checkout: cmp.Or(o.SDK, checkout), Release: o.Release}, main: main, flags: goFlags}, t, nil
	}
	return goProject{dir: abs, flags: goFlags}, t, nil
}

// within returns files with their paths relative to a folder made complete.
func within(dir string, files []string) (list []string) {
	for _, f := range files {
		list = append(list, filepath.Join(dir, f))
	}
	return list
}

// finish writes the manifests into a module, and the module to its file.
func finish(ctx context.Context, wasm []byte, cfg host.Config, more requests, res *Result) error {
	wasm, described, err := Annotate(ctx, wasm, cfg)
	if err != nil {
		return err
	}
	res.Described = described
	if !more.isZero() {
		if err = more.addTo(res.Manifests); err == nil {
			wasm, err = load.WithManifest(wasm, res.Manifests...)
		}
		if err != nil {
			return fmt.Errorf("module[%s]: %w", cfg.Name, err)
		}
	}
	res.Digest, res.Size = load.DigestOf(wasm), int64(len(wasm))
	if old, err := os.ReadFile(res.File); err == nil && load.DigestOf(old) == res.Digest {
		return nil
	}
	res.Changed = true
	if err := os.MkdirAll(filepath.Dir(res.File), 0o755); err != nil {
		return fmt.Errorf("module[%s]: %w", cfg.Name, err)
	}
	if err := atomicfile.Replace(res.File, wasm, 0o644); err != nil {
		return fmt.Errorf("module[%s]: write: %w", cfg.Name, err)
	}
	return nil
}
