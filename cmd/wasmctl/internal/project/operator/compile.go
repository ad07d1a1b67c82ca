// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// compiled is a program whose packages were compiled, as far as they compile.
type compiled struct {
	dir      string // of the stage
	packages []pkg  // in the order of their dependencies
	fset     *token.FileSet
	timeout  time.Duration             // of a run
	own      map[string]*types.Package // the project's packages that were checked
	deps     types.Importer
	clients  map[string]string // libraries that import a package of connecting, with that package
}

// compile compiles the packages of the program without linking them.
func (s *Stage) compile(ctx context.Context) (*compiled, error) {
	args := []string{"list", "-e", "-export", "-deps", "-trimpath", "-buildmode=c-shared", "-json=ImportPath,Dir,Export,Standard,GoFiles,IgnoredGoFiles,Imports,Module,Error"}
	var out bytes.Buffer
	if err := s.command(ctx, &out, append(args, "-tags="+s.tags(), s.pkg)...); err != nil {
		return nil, err
	}
	packages, err := readPackages(&out)
	if err != nil {
		return nil, err
	}
	exports, clients := map[string]string{}, map[string]string{}
	for i := range packages {
		p := &packages[i]
		exports[p.ImportPath] = p.Export
		if p.ofProgram() && !p.Module.Main && !quiet.MatchString(p.ImportPath) {
			for _, name := range connecting {
				if slices.Contains(p.Imports, name) {
					clients[p.ImportPath] = name
				}
			}
		}
	}
	c := &compiled{dir: s.dir, packages: packages, fset: token.NewFileSet(), own: map[string]*types.Package{}, clients: clients}
	c.deps = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("it does not compile")
		}
		return os.Open(exports[path])
	})
	return c, nil
}

func readPackages(r io.Reader) ([]pkg, error) {
	var all []pkg
	for d := json.NewDecoder(r); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// Import implements types.Importer.
func (c *compiled) Import(path string) (*types.Package, error) {
	if p := c.own[path]; p != nil {
		return p, nil
	}
	return c.deps.Import(path)
}

// check adds the compile errors to the report, and the findings about the project's packages.
func (c *compiled) check(r *Report) {
	zones := slices.ContainsFunc(c.packages, func(p pkg) bool { return p.ImportPath == "time/tzdata" })
	for i := range c.packages {
		p := &c.packages[i]
		if p.Module == nil || !p.Module.Main || p.Dir == "" {
			r.Findings = append(r.Findings, c.broken(p)...)
			continue
		}
		u := &usage{compiled: c, report: r, zones: zones}
		u.pkg(p)
		u.leftOut(p)
		if !u.failed {
			r.Findings = append(r.Findings, c.broken(p)...)
		}
	}
}

// place returns a position, relative to the project if it is in the project.
func (c *compiled) place(pos token.Pos) Place {
	at := c.fset.Position(pos)
	return Place{c.name(at.Filename), at.Line}
}

// name returns a file's path in the project. For another module, it omits the folder of the module
// cache.
func (c *compiled) name(file string) string {
	if rel, err := filepath.Rel(c.dir, file); err == nil && !strings.HasPrefix(rel, "..") {
		file = rel
	}
	file = filepath.ToSlash(file)
	if _, module, found := strings.Cut(file, "/pkg/mod/"); found {
		return module
	}
	return strings.TrimPrefix(file, links+"/")
}

// parse parses the files of a package. go list has already reported files that cannot be parsed.
func (c *compiled) parse(p *pkg) []*ast.File {
	var files []*ast.File
	for _, name := range p.GoFiles {
		if f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution); err == nil {
			files = append(files, f)
		}
	}
	return files
}

var located = regexp.MustCompile(`^(\S+?\.go):(\d+)(?::\d+)?: (.*)$`)

// broken returns the errors of a package that does not compile, with their places.
func (c *compiled) broken(p *pkg) (list []Finding) {
	if p.Error == nil {
		return nil
	}
	for line := range strings.Lines(p.Error.Pos + ": " + p.Error.Err + "\n" + p.Error.Err) {
		m := located.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[2]) // the pattern has only digits here
		file := m[1]
		if filepath.IsAbs(file) {
			file = c.name(file)
		}
		if f := (Finding{Place{file, n}, Fail, m[3], adviceFor(p, m[3])}); !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	if list == nil {
		list = []Finding{{c.importer(p.ImportPath), Fail, p.ImportPath + ": " + strings.TrimSpace(p.Error.Err), adviceFor(p, p.Error.Err)}}
	}
	if len(list) > 1 && (p.Module == nil || !p.Module.Main) { // a user cannot fix a library line by line
		list[0].What += fmt.Sprintf("; and %d more in package %s", len(list)-1, p.ImportPath)
		return list[:1]
	}
	return list
}

// importer returns the first place in the project that imports a package.
func (c *compiled) importer(path string) Place {
	for i := range c.packages {
		p := &c.packages[i]
		if p.Module == nil || !p.Module.Main || !slices.Contains(p.Imports, path) {
			continue
		}
		for _, f := range c.parse(p) {
			for _, spec := range f.Imports {
				if spec.Path.Value == strconv.Quote(path) {
					return c.place(spec.Pos())
				}
			}
		}
	}
	return Place{}
}

// componentConfig matches the names that controller-runtime 0.18 removed.
var componentConfig = regexp.MustCompile(`ConfigFile|AndFrom|controller-runtime/pkg/config/v1alpha1`)

// adviceFor returns the advice for a compile error.
func adviceFor(p *pkg, text string) string {
	switch {
	case strings.Contains(text, "controller-runtime/pkg/envtest"):
		return "use it in tests only: it starts an API server"
	case componentConfig.MatchString(text):
		return "controller-runtime has no component config since 0.18, and modules have none: read the settings from flags, or from a file that --files names"
	case strings.Contains(text, "not enough type arguments for type"):
		return "controller-runtime 0.18 has one type parameter, but modules and 0.19 have two: update it to 0.19, or use the type without parameters"
	case strings.Contains(text, "build constraints exclude all Go files"):
		return "the package does not exist for wasip1: do without it in a module, by a build constraint (//go:build !wasip1)"
	case p.Module != nil && p.Module.Main:
		return "modules do not have this symbol, or it belongs to another version of controller-runtime; exclude code that a module does not need with a build constraint (//go:build !wasip1)"
	}
	return "the package does not build for wasip1, or for the versions of controller-runtime and Kubernetes that modules are built with: update it, or do without it"
}
