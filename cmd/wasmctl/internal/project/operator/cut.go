// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
)

// cut returns a Go file with the named methods of some types only, and with the functions and imports that these
// use. It is empty if the file has none of the methods. A file that declares types stays as it is.
func cut(name string, src []byte, methods []string, types func(name string) bool) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	functions := map[string]*ast.FuncDecl{} // without a receiver
	var kept []*ast.FuncDecl
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				functions[d.Name.Name] = d
			} else if slices.Contains(methods, d.Name.Name) && types(receiver(d)) {
				kept = append(kept, d)
			}
		case *ast.GenDecl:
			if d.Tok == token.TYPE {
				return src, nil
			}
		}
	}
	if kept == nil {
		return nil, nil
	}
	used := map[string]bool{}
	for i := 0; i < len(kept); i++ { // grows
		ast.Inspect(kept[i], func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok && !used[id.Name] {
				used[id.Name] = true
				if f := functions[id.Name]; f != nil {
					kept = append(kept, f)
				}
			}
			return true
		})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\n", f.Name.Name)
	for _, i := range f.Imports {
		local := path.Base(strings.Trim(i.Path.Value, `"`))
		if i.Name != nil {
			local = i.Name.Name
		}
		if used[local] {
			fmt.Fprintf(&b, "import %s %s\n", local, i.Path.Value)
		}
	}
	for _, d := range kept {
		fmt.Fprintf(&b, "\n%s\n", src[fset.Position(d.Pos()).Offset:fset.Position(d.End()).Offset])
	}
	return b.Bytes(), nil
}

// receiver returns the name of the type that has a method.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// writeCut writes a file with the named methods of another one.
func writeCut(from, to string, methods []string, types func(name string) bool) error {
	src, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	text, err := cut(from, src, methods, types)
	if err != nil || text == nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
