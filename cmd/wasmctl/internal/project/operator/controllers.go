// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"go/ast"
	"slices"
	"strings"
)

const ofBuilder = "(*" + ofRuntime + "builder.TypedBuilder[request])."

// controllers finds the calls of the builder. Each function with such calls is a controller.
func (u *usage) controllers(f *ast.File) {
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		var c Controller
		found := false
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && u.builds(call, &c) {
				found = true
			}
			return true
		})
		if found {
			c.Place = u.place(fn.Pos())
			u.report.Controllers = append(u.report.Controllers, c)
		}
	}
}

// builds records the kinds in a call of the builder, or of source.Kind. In a chain, the last call
// comes first.
func (u *usage) builds(call *ast.CallExpr, c *Controller) bool {
	var id *ast.Ident
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		id = fun.Sel
	case *ast.IndexExpr: // with a type argument
		if sel, ok := fun.X.(*ast.SelectorExpr); ok {
			id = sel.Sel
		}
	}
	if id == nil {
		return false
	}
	name := nameOf(u.info.Uses[id])
	method, _ := strings.CutPrefix(name, ofBuilder)
	switch {
	case method == "For" && len(call.Args) > 0:
		c.For = u.kind(call.Args[0])
	case method == "Owns" && len(call.Args) > 0:
		c.Owns = slices.Insert(c.Owns, 0, u.kind(call.Args[0]))
	case (method == "Watches" || method == "WatchesMetadata") && len(call.Args) > 0:
		c.Watches = slices.Insert(c.Watches, 0, u.kind(call.Args[0]))
	case (name == ofRuntime+"source.Kind" || name == ofRuntime+"source.TypedKind") && len(call.Args) > 1:
		c.Watches = append(c.Watches, u.kind(call.Args[1]))
	default:
		return false
	}
	return true
}

// kind returns the type of an argument, as in the source.
func (u *usage) kind(arg ast.Expr) string {
	t := u.info.Types[arg].Type
	if t == nil {
		return "?"
	}
	name := t.String()
	return strings.TrimPrefix(name[strings.LastIndex(name, "/")+1:], "*")
}
