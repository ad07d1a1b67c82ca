// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
)

// typeName is a type of a package.
type typeName struct{ pkg, name string }

// reached returns a function that reports whether a type of the modules in libraries is named by another package
// of the program, or is the type of a field of such a type. The program can print values of these types.
func reached(packages []pkg, libraries map[string]bool) (func(typeName) bool, error) {
	r := reach{seen: map[typeName]bool{}, of: map[string]*pkg{}, loaded: map[string]bool{}, fields: map[typeName][]typeName{}}
	for i := range packages {
		if p := &packages[i]; p.Module != nil && libraries[p.Module.Path] {
			r.of[p.ImportPath] = p
		}
	}
	for i := range packages {
		p := &packages[i]
		if r.of[p.ImportPath] != nil || !r.usedBy(p) {
			continue
		}
		files, err := parseAll(p)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			for _, t := range r.namesIn(f, "", f) {
				if err := r.add(t); err != nil {
					return nil, err
				}
			}
		}
	}
	return func(t typeName) bool { return r.seen[t] }, nil
}

// reach collects types.
type reach struct {
	of     map[string]*pkg         // the packages of the libraries, by import path
	loaded map[string]bool         // packages in fields
	fields map[typeName][]typeName // the types of the fields of a type
	seen   map[typeName]bool
}

func (r *reach) usedBy(p *pkg) bool {
	for _, i := range p.Imports {
		if r.of[i] != nil {
			return true
		}
	}
	return false
}

// add adds a type and the types of its fields. Names of functions and constants have no fields.
func (r *reach) add(t typeName) error {
	if r.seen[t] {
		return nil
	}
	r.seen[t] = true
	if err := r.load(t.pkg); err != nil {
		return err
	}
	for _, f := range r.fields[t] {
		if err := r.add(f); err != nil {
			return err
		}
	}
	return nil
}

// load reads the types of a package.
func (r *reach) load(path string) error {
	if r.loaded[path] {
		return nil
	}
	r.loaded[path] = true
	files, err := parseAll(r.of[path])
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				at := typeName{path, t.Name.Name}
				r.fields[at] = append(r.fields[at], r.namesIn(f, path, t.Type)...)
			}
		}
	}
	return err
}

// namesIn returns the names of the libraries in a part of a file. own is the package of the file if it is
// one of the libraries.
func (r *reach) namesIn(f *ast.File, own string, part ast.Node) (names []typeName) {
	local := map[string]string{}
	for _, i := range f.Imports {
		at, _ := strconv.Unquote(i.Path.Value) // the parser has checked it
		if r.of[at] == nil {
			continue
		}
		name := path.Base(at)
		if i.Name != nil {
			name = i.Name.Name
		}
		local[name] = at
	}
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && local[x.Name] != "" {
				names = append(names, typeName{local[x.Name], n.Sel.Name})
				return false
			}
		case *ast.Ident:
			if at := local["."]; at != "" {
				names = append(names, typeName{at, n.Name})
			}
			if own != "" {
				names = append(names, typeName{own, n.Name})
			}
		}
		return true
	})
	return names
}

// parseAll parses the files of a package, without those that protobuf's compiler wrote.
func parseAll(p *pkg) (files []*ast.File, err error) {
	fset := token.NewFileSet()
	for _, name := range p.GoFiles {
		if ok, _ := path.Match("*.pb.go", name); ok {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
