// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// apiFile has the exported declarations of the packages that follow semantic versioning.
const apiFile = "testdata/api.txt"

// A change of the public API must touch apiFile, so that it is seen.
func TestAPI_IsThatOfTheFile(t *testing.T) {
	var got strings.Builder
	for _, dir := range []string{".", "api/v1alpha1"} {
		decls := exported(t, dir)
		if len(decls) == 0 {
			t.Fatalf("%s exports nothing", dir)
		}
		got.WriteString("# package " + dir + "\n\n" + strings.Join(decls, "\n") + "\n\n")
	}
	if os.Getenv("WASMCTL_UPDATE") != "" {
		if err := os.WriteFile(apiFile, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(apiFile)
	if diff := cmp.Diff(string(want), got.String()); diff != "" || err != nil {
		t.Errorf("%s: if the change is intended: WASMCTL_UPDATE=1 go test -run TestAPI . (error %v, -want +got):\n%s", apiFile, err, diff)
	}
}

// exported returns the exported declarations of a package, sorted, without comments and bodies.
func exported(t *testing.T, dir string) (decls []string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	add := func(node any) {
		var text bytes.Buffer
		if err := printer.Fprint(&text, token.NewFileSet(), node); err != nil { // without the lines of the source
			t.Fatal(err)
		}
		decls = append(decls, text.String())
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Body = nil; d.Recv == nil || exportedType(d.Recv.List[0].Type) {
					add(d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if d.Tok == token.IMPORT {
						continue
					}
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						v.Values = nil
						if v.Type == nil {
							v.Type = ast.NewIdent("_") // that of its value
						}
					}
					add(&ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
				}
			}
		}
	}
	slices.Sort(decls)
	return decls
}

// exportedType reports whether a receiver's type is exported.
func exportedType(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	name, ok := e.(*ast.Ident)
	return !ok || name.IsExported()
}
