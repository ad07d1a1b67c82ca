// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
)

// usage searches a package of the project.
type usage struct {
	*compiled

	report *Report
	zones  bool // the program has time zone data
	main   bool // it is the main package
	failed bool // it has errors of its own
	gaps   bool // it imports a package that does not compile
	info   types.Info

	envPrefix string // of the variables that viper reads
}

// pkg checks the types of a package, and then the symbols that it uses.
func (u *usage) pkg(p *pkg) {
	files := u.parse(p)
	u.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: u, Sizes: types.SizesFor("gc", "wasm"), Error: func(err error) { u.typeError(p, err) }}
	checked, _ := conf.Check(p.ImportPath, u.fset, files, &u.info) // the errors are counted one by one
	u.own[p.ImportPath] = checked
	u.main = checked != nil && checked.Name() == "main"
	for _, f := range files {
		ast.Inspect(f, u.node)
		u.controllers(f)
	}
}

// follows matches errors that a package may have because it embeds or passes types of packages that
// do not compile.
var follows = regexp.MustCompile(`\(type \*?\w+ has no field or method|cannot infer`)

// typeError records an error in the project's sources. An error that only follows from another
// package is reported for that package.
func (u *usage) typeError(p *pkg, err error) {
	e, ok := err.(types.Error) //nolint:errorlint // documented to be of this type
	if !ok || e.Soft {
		return
	}
	if strings.Contains(e.Msg, "could not import") {
		u.gaps = true // these come first
		return
	}
	if u.gaps && follows.MatchString(e.Msg) {
		return
	}
	u.failed = true
	u.report.Findings = append(u.report.Findings, Finding{u.place(e.Pos), Fail, e.Msg, adviceFor(p, e.Msg)})
}

func (u *usage) find(at ast.Node, name string, a *advice) {
	what := a.what
	if name != "" {
		what = name + " " + what
	}
	u.report.Findings = append(u.report.Findings, Finding{u.place(at.Pos()), a.verdict, what, a.do})
}

// node looks at one node of the syntax.
func (u *usage) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		if !u.main {
			u.find(n, "", &leavesBehind)
		}
	case *ast.CallExpr:
		if nameOf(u.callee(n)) == addsRunnable && len(n.Args) == 1 && !u.harmless(n.Args[0]) {
			u.find(n, "mgr.Add", &runsBeside)
		}
		u.input(n)
		u.wait(n)
		u.connects(n)
	case *ast.StructType:
		u.tags(n)
	case *ast.Ident:
		u.ident(n)
	}
	return true
}

// connects reports a call of a library that imports an HTTP client or the like, once for each library.
func (u *usage) connects(call *ast.CallExpr) {
	f := u.callee(call)
	if f == nil || f.Pkg() == nil || u.clients[f.Pkg().Path()] == "" {
		return
	}
	path := f.Pkg().Path()
	u.find(call, path+" imports "+u.clients[path]+":", &mayConnect)
	delete(u.clients, path)
}

var leavesBehind = advice{Warn, "starts a goroutine", "the host does not wait for goroutines that outlive a run: wait for it in Reconcile", nil}

func (u *usage) ident(id *ast.Ident) {
	obj := u.info.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return
	}
	name := nameOf(obj)
	if name == zone && !u.zones {
		u.find(id, name, &needsZones)
		return
	}
	a := symbols[name]
	if _, isFunc := obj.(*types.Func); a == nil && isFunc && !strings.HasPrefix(name, "(") {
		a = symbols[obj.Pkg().Path()+"."]
	}
	if a != nil {
		u.find(id, shorten(name), a)
	}
}

// harmless reports whether a module's manager accepts the argument.
func (u *usage) harmless(arg ast.Expr) bool {
	t := u.info.Types[arg].Type
	return t == nil || harmless[types.Unalias(t).String()]
}

// nameOf returns the full name of a function, a method or another object of a package.
func nameOf(obj types.Object) string {
	switch o := obj.(type) {
	case nil:
		return ""
	case *types.Func:
		return o.Origin().FullName()
	}
	if obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
		return ""
	}
	return obj.Pkg().Path() + "." + obj.Name()
}

// shorten reduces a name to the last element of its package and the symbol.
func shorten(name string) string {
	open := strings.LastIndexAny(name, "(*") + 1
	slash := strings.LastIndex(name, "/") + 1
	if slash < open {
		return name
	}
	return name[:open] + name[slash:]
}
