// SPDX-License-Identifier: Apache-2.0

// Package operator builds existing operators, which are projects on controller-runtime, as modules.
// It makes a folder for go build, with the stand-in for controller-runtime and without code that a
// module cannot use. It also finds the rights that the program needs in its sources.
package operator

import (
	"errors"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	runtimePath = "sigs.k8s.io/controller-runtime"
	sdkPath     = "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Project is an operator.
type Project struct {
	// Root is the absolute path of the folder with its go.mod.
	Root string
	// Package is the folder of its main package, relative to Root.
	Package string
	// Roles are files with further roles of the operator's deployment. Objects are files with the
	// objects that main sees before it starts the manager.
	Roles, Objects []string
	// Timeout is the time limit of a run that the project requests. If 0, it is the default.
	Timeout time.Duration
	// Tags are the build tags of the program, separated by commas. LDFlags are its flags for the linker.
	Tags, LDFlags string
	// Modules is the value of -mod: "vendor" for the project's vendor folder, "mod" or "readonly" to ignore it.
	// If empty, the folder is used if it exists.
	Modules string
}

var requires = regexp.MustCompile(`(?m)^\s*(require\s+)?` + regexp.QuoteMeta(runtimePath) + `\s+v`)

// Find returns the operator in dir, an absolute path, or nil if dir has none. An operator's go.mod
// requires controller-runtime. Its main package is in dir, in the folder cmd, or in the only folder
// below cmd.
func Find(dir string) (*Project, error) {
	root := dir
	for {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil && !requires.Match(text) {
			return nil, nil //nolint:nilnil // documented
		}
		if err == nil {
			break
		}
		up := filepath.Dir(root)
		if !errors.Is(err, fs.ErrNotExist) || up == root {
			return nil, nil //nolint:nilnil // the caller reports the main packages
		}
		root = up
	}
	main, err := mainOf(root, dir)
	if main == "" || err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, main)
	return &Project{Root: root, Package: rel}, err
}

// mainOf returns the folder of the main package. It is empty if there is none, or more than one.
func mainOf(root, dir string) (string, error) {
	if IsMain(dir) {
		return dir, nil
	}
	cmd := filepath.Join(root, "cmd")
	switch {
	case dir != root:
		return "", nil
	case IsMain(cmd):
		return cmd, nil
	}
	below, err := filepath.Glob(filepath.Join(cmd, "*"))
	if err != nil {
		return "", err
	}
	below = slices.DeleteFunc(below, func(d string) bool { return !IsMain(d) })
	if len(below) != 1 {
		return "", nil
	}
	return below[0], nil
}

// Programs returns the folders of the main packages below dir, a Go module. Without a go.mod, there
// are none.
func Programs(dir string) (list []string) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // a folder that cannot be read has none
		switch {
		case err != nil:
			return fs.SkipDir
		case !d.IsDir() || path == dir:
			return nil
		}
		_, other := os.Stat(filepath.Join(path, "go.mod"))
		if name := d.Name(); other == nil || name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") {
			return fs.SkipDir
		}
		if IsMain(path) {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// IsMain reports whether a folder has a main package in a build for modules. Files to be run by
// themselves (//go:build ignore) do not count.
func IsMain(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false
	}
	at := build.Default
	at.GOOS, at.GOARCH = "wasip1", "wasm"
	return slices.ContainsFunc(files, func(file string) bool {
		built, err := at.MatchFile(dir, filepath.Base(file))
		if err != nil || !built || strings.HasSuffix(file, "_test.go") {
			return false
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		return err == nil && f.Name.Name == "main"
	})
}

// Name returns the name of the module: the folder of the main package, or the project's folder if
// that one is cmd.
func (p *Project) Name() string {
	if p.Package == "." || p.Package == "cmd" {
		return filepath.Base(p.Root)
	}
	return filepath.Base(p.Package)
}
