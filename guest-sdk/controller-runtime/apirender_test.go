// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"go/ast"
	"strconv"
	"strings"
)

// renderer formats types as text.
type renderer struct {
	pkg     string
	imports map[string]string
	types   map[string]string // type parameters
}

// with returns a renderer that also knows the type parameters of list.
func (r renderer) with(list *ast.FieldList) renderer {
	var names []string
	if list != nil {
		for _, f := range list.List {
			for _, n := range f.Names {
				names = append(names, n.Name)
			}
		}
	}
	return r.named(names)
}

func (r renderer) named(names []string) renderer {
	r.types = map[string]string{}
	for i, n := range names {
		r.types[n] = "$" + strconv.Itoa(i+1)
	}
	return r
}

// params formats the constraints of type parameters.
func (r renderer) params(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	return "[" + strings.Join(r.list(list), ", ") + "]"
}

func (r renderer) signature(f *ast.FuncType) string {
	s := "(" + strings.Join(r.list(f.Params), ", ") + ")"
	if f.Results != nil {
		s += " (" + strings.Join(r.list(f.Results), ", ") + ")"
	}
	return s
}

// list formats the type of each parameter.
func (r renderer) list(l *ast.FieldList) []string {
	var out []string
	for _, f := range l.List {
		for range max(len(f.Names), 1) {
			out = append(out, r.expr(f.Type))
		}
	}
	return out
}

//nolint:cyclop // one case for each kind of expression
func (r renderer) expr(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		if p, ok := r.types[x.Name]; ok {
			return p
		}
		if ast.IsExported(x.Name) {
			return r.pkg + "." + x.Name
		}
		return strings.Replace(x.Name, "interface{}", "any", 1)
	case *ast.SelectorExpr:
		return r.imports[x.X.(*ast.Ident).Name] + "." + x.Sel.Name
	case *ast.StarExpr:
		return "*" + r.expr(x.X)
	case *ast.ArrayType:
		return "[]" + r.expr(x.Elt)
	case *ast.Ellipsis:
		return "..." + r.expr(x.Elt)
	case *ast.MapType:
		return "map[" + r.expr(x.Key) + "]" + r.expr(x.Value)
	case *ast.ChanType:
		return map[ast.ChanDir]string{ast.SEND: "chan<- ", ast.RECV: "<-chan "}[x.Dir] + r.expr(x.Value)
	case *ast.FuncType:
		return "func" + r.signature(x)
	case *ast.IndexExpr:
		return r.expr(x.X) + "[" + r.expr(x.Index) + "]"
	case *ast.IndexListExpr:
		var args []string
		for _, i := range x.Indices {
			args = append(args, r.expr(i))
		}
		return r.expr(x.X) + "[" + strings.Join(args, ", ") + "]"
	case *ast.InterfaceType:
		if x.Methods == nil || len(x.Methods.List) == 0 {
			return "any"
		}
		return "interface"
	case *ast.StructType:
		return "struct"
	}
	return "?"
}

// promoted reports whether a member of a type comes from an embedded type, or
// from the type that it is an alias of.
func promoted(symbols map[string]string, name string) bool {
	typ, member := name[:strings.LastIndex(name, ".")], name[strings.LastIndex(name, ".")+1:]
	for at, is := range symbols {
		from := ""
		if at == typ {
			_, from, _ = strings.Cut(is, " = ")
		} else if strings.HasPrefix(at, typ+".") {
			if embedded, ok := strings.CutPrefix(is, "embedded "); ok {
				from = embedded
			}
		}
		from, _, _ = strings.Cut(strings.TrimPrefix(from, "*"), "[")
		if _, ok := symbols[from+"."+member]; ok || strings.HasPrefix(from, "pkg/") && from != typ && promoted(symbols, from+"."+member) {
			return true
		}
	}
	return false
}
