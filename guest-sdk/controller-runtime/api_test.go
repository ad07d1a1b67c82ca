// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// versions are the versions of controller-runtime whose API this module
// provides.
var versions = []string{"v0.15.3", "v0.16.6", "v0.17.6", "v0.18.7", "v0.19.7", "v0.22.4", "v0.24.1", "v0.25.2"}

// Each exported symbol of controller-runtime exists here with the same type, or
// testdata/missing.txt gives the reason. The symbol of any version is accepted.
func TestAPI_HasWhatControllerRuntimeHas(t *testing.T) {
	ours := readAPI(t, ".")
	reasons := readReasons(t)
	stands := reasons.types()
	missing := map[string]bool{}
	for name, want := range realAPI(t) {
		have, ok := ours[name]
		if !ok {
			if !promoted(ours, name) {
				missing[name] = true
			}
			continue
		}
		for i := range want {
			want[i] = stands.Replace(want[i])
		}
		if !slices.Contains(want, stands.Replace(have)) {
			missing[name+" differs"] = true
			t.Logf("%s:\n  is   %s\n  want %s", name, have, strings.Join(want, "\n    or "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if !reasons.cover(name) {
			t.Errorf("%s: add it, or give the reason in testdata/missing.txt", name)
		}
	}
	for _, r := range reasons {
		if !r.used {
			t.Errorf("testdata/missing.txt: %q: is no longer missing", r.name)
		}
	}
}

// reason is an entry of testdata/missing.txt: a symbol that is missing or
// differs, or a type with a replacement.
type reason struct {
	name, stands string
	used         bool
}

type reasonList []*reason

// types replaces the types of controller-runtime by their replacements.
func (l reasonList) types() *strings.Replacer {
	var pairs []string
	for _, r := range l {
		if r.stands != "" {
			pairs = append(pairs, r.name, r.stands)
			r.used = true
		}
	}
	return strings.NewReplacer(pairs...)
}

// cover reports whether there is an entry for a symbol. An entry that ends in *
// matches by prefix.
func (l reasonList) cover(name string) bool {
	for _, r := range l {
		if prefix, ok := strings.CutSuffix(r.name, "*"); r.name == name || ok && strings.HasPrefix(name, prefix) {
			r.used = true
			return true
		}
	}
	return false
}

// realAPI returns the symbols of all versions, with their types.
func realAPI(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, v := range versions {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/controller-runtime@"+v)
		cmd.Dir = t.TempDir() // outside of this module, without its replacements
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("SKIPPED: controller-runtime %s cannot be downloaded: %v: %s", v, err, out)
		}
		var at struct{ Dir string }
		if err := json.Unmarshal(out, &at); err != nil {
			t.Fatal(err)
		}
		for name, typ := range readAPI(t, at.Dir) {
			all[name] = append(all[name], typ)
		}
	}
	return all
}

// readReasons reads testdata/missing.txt.
func readReasons(t *testing.T) reasonList {
	t.Helper()
	text, err := os.ReadFile("testdata/missing.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list reasonList
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, _ := strings.Cut(line, ": ")
		if why == "" {
			t.Errorf("testdata/missing.txt: %q: has no reason", line)
		}
		name, stands, _ := strings.Cut(name, " is ")
		list = append(list, &reason{name: name, stands: stands})
	}
	return list
}

// readAPI returns the exported symbols of the module in dir, with their types
// as text. It writes packages as import paths, and type parameters as numbers.
func readAPI(t *testing.T, dir string) map[string]string {
	t.Helper()
	a := api{symbols: map[string]string{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			name := d.Name()
			if name == "internal" || name == "testdata" || rel != "." && !strings.HasPrefix(rel, "pkg") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_older.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			a.file(filepath.ToSlash(filepath.Dir(rel)), f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.symbols
}

type api struct{ symbols map[string]string }

func (a *api) file(pkg string, f *ast.File) {
	r := renderer{pkg: pkg, imports: map[string]string{}}
	for _, imp := range f.Imports {
		path := strings.Trim(imp.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
			path := strings.TrimSuffix(path, "/"+name)
			if !strings.Contains(path, "/api/") && !strings.Contains(path, "/apis/") {
				name = path[strings.LastIndex(path, "/")+1:]
			}
		}
		if imp.Name != nil {
			name = imp.Name.Name
		}
		r.imports[name] = strings.TrimPrefix(path, "sigs.k8s.io/controller-runtime/")
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			a.function(r, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				a.spec(r, d.Tok, s)
			}
		}
	}
}

func (a *api) function(r renderer, d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		r := r.with(d.Type.TypeParams)
		a.symbols[r.pkg+"."+d.Name.Name] = "func" + r.params(d.Type.TypeParams) + r.signature(d.Type)
		return
	}
	base, args := receiver(d.Recv.List[0].Type)
	if !ast.IsExported(base) {
		return
	}
	r = r.named(args)
	a.symbols[r.pkg+"."+base+"."+d.Name.Name] = "func" + r.signature(d.Type)
}

// receiver returns the type of a receiver, and the names of its type
// parameters.
func receiver(x ast.Expr) (base string, args []string) {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		base, _ = receiver(x.X)
		return base, []string{x.Index.(*ast.Ident).Name}
	case *ast.IndexListExpr:
		base, _ = receiver(x.X)
		for _, i := range x.Indices {
			args = append(args, i.(*ast.Ident).Name)
		}
		return base, args
	case *ast.Ident:
		return x.Name, nil
	}
	return "", nil
}

func (a *api) spec(r renderer, tok token.Token, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() {
				a.symbols[r.pkg+"."+n.Name] = tok.String()
			}
		}
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			a.typ(r.with(s.TypeParams), s)
		}
	}
}

func (a *api) typ(r renderer, s *ast.TypeSpec) {
	name := r.pkg + "." + s.Name.Name
	text := "type" + r.params(s.TypeParams)
	switch t := s.Type.(type) {
	case *ast.StructType:
		a.members(r, name, t.Fields)
		text += " struct"
	case *ast.InterfaceType:
		a.members(r, name, t.Methods)
		text += " interface"
	default:
		if s.Assign.IsValid() {
			text += " ="
		}
		text += " " + r.expr(t)
	}
	a.symbols[name] = text
}

// members adds the fields of a struct, or the methods of an interface.
func (a *api) members(r renderer, name string, list *ast.FieldList) {
	for _, f := range list.List {
		typ := r.expr(f.Type)
		for _, n := range f.Names {
			if n.IsExported() {
				a.symbols[name+"."+n.Name] = typ
			}
		}
		if len(f.Names) > 0 {
			continue
		}
		base := typ[strings.LastIndexAny(typ, "./*")+1:]
		if base, _, _ = strings.Cut(base, "["); ast.IsExported(base) {
			a.symbols[name+"."+base] = "embedded " + typ
		}
	}
}
