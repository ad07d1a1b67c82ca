// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// InputKind is the way in which a program gets an input.
type InputKind string

// The kinds of inputs.
const (
	InputFlag InputKind = "flag"
	InputEnv  InputKind = "env"
	InputFile InputKind = "file"
)

// Input is a flag, an environment variable or a file that the project's code reads.
type Input struct {
	Place

	Kind InputKind `json:"kind"`
	// Name is the name of the variable, of the flag without hyphens, or the path of the file.
	Name string `json:"name"`
	// Default is the value that the program has otherwise, if the code shows it.
	Default string `json:"default,omitempty"`
	// Usage is the text of the flag's help.
	Usage string `json:"usage,omitempty"`
}

// readers are the functions that read one environment variable, whose name is their first argument.
var readers = map[string]bool{
	"os.Getenv": true, "os.LookupEnv": true, "syscall.Getenv": true,
	"k8s.io/utils/env.GetString": true, "k8s.io/utils/env.GetInt": true,
}

// opens are the functions that read the file that their first argument names.
var opens = map[string]bool{"os.Open": true, "os.ReadFile": true, "os.ReadDir": true, "io/ioutil.ReadFile": true}

// filePath matches the absolute path of a file, as opposed to that of a URL, such as /metrics.
var filePath = regexp.MustCompile(`^/[\w.-]+(/[\w.-]+)+$`)

// input reports the flag, the variable or the file that a call reads.
func (u *usage) input(call *ast.CallExpr) {
	f, ok := u.callee(call).(*types.Func)
	if !ok || f.Pkg() == nil {
		return
	}
	if readers[f.FullName()] && len(call.Args) > 0 {
		if name, ok := u.constant(call.Args[0]); ok {
			u.addInput(call, Input{Kind: InputEnv, Name: name})
		}
		return
	}
	if opens[f.FullName()] && len(call.Args) > 0 {
		if name, ok := u.constant(call.Args[0]); ok && filePath.MatchString(name) {
			u.addInput(call, Input{Kind: InputFile, Name: name})
		}
		return
	}
	if u.library(call, f) {
		return
	}
	if p := f.Pkg().Path(); p == "flag" || p == "github.com/spf13/pflag" {
		u.flag(call, f)
	}
}

// callee returns the object that a call names.
func (u *usage) callee(call *ast.CallExpr) types.Object {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return u.info.Uses[fun]
	case *ast.SelectorExpr:
		return u.info.Uses[fun.Sel]
	}
	return nil
}

// flag reports the flag that a call of package flag or pflag defines: a function with the parameters
// name and usage. One of the parameters between them is the default.
func (u *usage) flag(call *ast.CallExpr, f *types.Func) {
	in := Input{Kind: InputFlag}
	at, last := -1, -1
	params := f.Signature().Params()
	for i := range min(params.Len(), len(call.Args)) {
		value, _ := u.constant(call.Args[i])
		switch params.At(i).Name() {
		case "name":
			in.Name, at = value, i
		case "value":
			in.Default = value
		case "usage":
			in.Usage, last = value, i
		}
	}
	if at >= 0 && last > at && in.Name != "" {
		u.addInput(call, in)
		if text := strings.ToLower(in.Name + " " + in.Usage); filePath.MatchString(in.Default) && (strings.Contains(text, "file") || strings.Contains(text, "config")) {
			u.addInput(call, Input{Kind: InputFile, Name: in.Default})
		}
	}
}

// constant returns the text of a constant expression.
func (u *usage) constant(e ast.Expr) (string, bool) {
	v := u.info.Types[e].Value
	if v == nil {
		return "", false
	}
	if v.Kind() == constant.String {
		return constant.StringVal(v), true
	}
	return v.ExactString(), true
}

// envTags are the keys of struct tags that name variables: of caarlos0/env and sethvargo/go-envconfig,
// and of kelseyhightower/envconfig.
var envTags = []string{"env", "envconfig"}

// tags reports the variables that the tags of a struct name.
func (u *usage) tags(s *ast.StructType) {
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		for _, key := range envTags {
			name, _, _ := strings.Cut(tag.Get(key), ",")
			if name != "" && name != "-" {
				u.addInput(f, Input{Kind: InputEnv, Name: name, Default: cmp.Or(tag.Get("default"), tag.Get("envDefault"))})
			}
		}
	}
}

func (u *usage) addInput(at ast.Node, in Input) {
	in.Place = u.place(at.Pos())
	u.report.Inputs = append(u.report.Inputs, in)
}

// sortInputs sorts inputs by kind and name, and keeps the first place of each.
func sortInputs(list []Input) []Input {
	slices.SortFunc(list, func(a, b Input) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return slices.CompactFunc(list, func(a, b Input) bool { return a.Kind == b.Kind && a.Name == b.Name })
}
