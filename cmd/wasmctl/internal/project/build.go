// Package project makes and builds the source of a module: what wasmctl new and
// wasmctl build do. Only this package knows the flags that each toolchain needs.
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
)

// Options say how to build. The zero value builds what the folder has, next to
// its source.
type Options struct {
	// Toolchain wins over the project file; empty leaves it to that, then to what
	// is in the folder.
	Toolchain Toolchain
	// Output is the file to write; empty means the project file's, then NAME.wasm
	// in the folder.
	Output string
	// SDK is a checkout of wasmctl, whose stand-in for controller-runtime an operator
	// is built with; empty means that of Release, a version of wasmctl. Without
	// either it is the checkout that this wasmctl was built from.
	SDK, Release string
	// Main is what main of an operator gets; it wins over the project file's.
	Main operator.Main
	// Roles are files with roles of an operator, Objects those with what its main sees,
	// beside the project file's.
	Roles, Objects []string
	// Files are those that the module has, "PATH=FILE" each, and Namespace what the file of
	// the service account says; they win over the project file's.
	Files     []string
	Namespace string
	// CacheDir keeps the compiled code, which a host takes that has the same CacheKey; ""
	// keeps none.
	CacheDir string
	CacheKey []byte
	// Stderr gets what the compiler says; nil drops it.
	Stderr io.Writer
}

// Result is a module that was built.
type Result struct {
	// File is where it was written.
	File string `json:"file"`
	// Toolchain built it; Version is what that says of itself.
	Toolchain Toolchain `json:"toolchain"`
	Version   string    `json:"version"`
	// Digest is "sha256:" and the hash of the file, Size its bytes.
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Described is what the module says of itself; it is in the file.
	Described
	// Changed is false where the file had these bytes already; it is then left
	// alone.
	Changed bool `json:"changed"`
	// Took is how long the build took.
	Took time.Duration `json:"took"`
}

// builder compiles with one toolchain.
type builder interface {
	// version says what the toolchain is; the error, which matches ErrNoToolchain,
	// how to get it.
	version(ctx context.Context) (string, error)
	// name is that of the project.
	name() string
	// compile writes the module's bytes to a file.
	compile(ctx context.Context, file string, stderr io.Writer) error
}

// Build compiles the project in dir and writes its manifest into the module. The
// same source and toolchain give the same bytes, wherever dir is. The file is
// replaced only once everything has gone well. The error matches ErrNoProject,
// ErrNoToolchain or host.ErrInvalidModule; the compiler's own words are in
// Options.Stderr.
func Build(ctx context.Context, dir string, o Options) (Result, error) {
	started := time.Now()
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	b, files, res, err := prepare(ctx, dir, o)
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
	if t, ok := b.(*tinyGoProject); ok && t.env != nil { // it was another Go than at first
		if res.Version, err = t.version(ctx); err != nil {
			return res, fmt.Errorf("project[%s]: %w", dir, err)
		}
	}
	if len(files) > 0 {
		if wasm, err = host.WithFiles(wasm, files); err != nil {
			return res, fmt.Errorf("project[%s]: %w", dir, err)
		}
	}
	if err := finish(ctx, wasm, host.Config{Name: b.name(), CacheDir: o.CacheDir, CacheKey: o.CacheKey}, &res); err != nil {
		if _, ok := b.(*operatorProject); ok {
			err = helpMain(err)
		}
		return res, err
	}
	res.Took = time.Since(started)
	return res, nil
}

// prepare determines source, toolchain, files and target of a build.
func prepare(ctx context.Context, dir string, o Options) (b builder, files map[string][]byte, res Result, err error) {
	found, err := find(dir)
	if err != nil {
		return nil, nil, res, err
	}
	file, err := readFile(dir)
	if err != nil {
		return nil, nil, res, err
	}
	b, t, err := choose(dir, found, file, o)
	if err != nil {
		return nil, nil, res, err
	}
	if _, ok := b.(*operatorProject); !ok && (!o.Main.IsZero() || len(o.Roles)+len(o.Objects) > 0) {
		return nil, nil, res, fmt.Errorf("project[%s]: %w for arguments after \"--\", --env, --objects, --roles or --without: they are for the main of an operator that uses controller-runtime", dir, ErrNoProject)
	}
	files, err = moduleFiles(dir, file, o)
	if err == nil {
		res = Result{Toolchain: t, File: cmp.Or(o.Output, outputOf(dir, file, b))}
		res.Version, err = b.version(ctx)
	}
	if err != nil {
		return nil, nil, res, fmt.Errorf("project[%s]: %w", dir, err)
	}
	return b, files, res, nil
}

func outputOf(dir string, file File, b builder) string {
	return filepath.Join(dir, cmp.Or(file.Output, b.name()+".wasm"))
}

// Built returns the file that Build writes without options. The error matches
// ErrNoProject.
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

// choose returns what builds the folder.
func choose(dir string, found Toolchain, file File, o Options) (builder, Toolchain, error) {
	t := cmp.Or(o.Toolchain, Toolchain(file.Toolchain), found)
	if (t == Rust) != (found == Rust) {
		return nil, "", fmt.Errorf("project[%s]: %w with %s: its source is for %s", dir, ErrNoProject, t, found)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs) // as compilers name it
	}
	if err != nil {
		return nil, "", fmt.Errorf("project[%s]: %w", dir, err)
	}
	if t == Rust {
		return &rustProject{dir: abs, target: cmp.Or(file.Target, DefaultTarget)}, t, nil
	}
	if t == TinyGo {
		return &tinyGoProject{dir: abs}, t, nil
	}
	p, err := operator.Find(abs)
	if err != nil {
		return nil, "", fmt.Errorf("project[%s]: %w", dir, err)
	}
	main := o.Main.Over(file.Main)
	if p != nil {
		p.Roles, p.Objects = append(within(abs, file.Roles), o.Roles...), append(within(abs, file.Objects), o.Objects...)
		return &operatorProject{Project: p, sdk: operator.SDK{Checkout: cmp.Or(o.SDK, checkout), Release: o.Release}, main: main}, t, nil
	}
	return goProject{dir: abs}, t, nil
}

// within are files that are relative to a folder.
func within(dir string, files []string) (list []string) {
	for _, f := range files {
		list = append(list, filepath.Join(dir, f))
	}
	return list
}

// finish writes the manifests into a module, and the module to its file.
func finish(ctx context.Context, wasm []byte, cfg host.Config, res *Result) error {
	var err error
	if wasm, res.Described, err = Annotate(ctx, wasm, cfg); err != nil {
		return err
	}
	res.Digest, res.Size = host.DigestOf(wasm), int64(len(wasm))
	if old, err := os.ReadFile(res.File); err == nil && host.DigestOf(old) == res.Digest {
		return nil
	}
	res.Changed = true
	if err := os.MkdirAll(filepath.Dir(res.File), 0o755); err != nil {
		return fmt.Errorf("module[%s]: %w", cfg.Name, err)
	}
	if err := ReplaceFile(res.File, wasm); err != nil {
		return fmt.Errorf("module[%s]: write: %w", cfg.Name, err)
	}
	return nil
}
