// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"go/ast"
	"go/types"
	"reflect"
	"regexp"
	"strings"
)

const (
	ofViper     = "github.com/spf13/viper"
	ofEnvconfig = "github.com/kelseyhightower/envconfig"
)

// library reports the variables that a call lets a library read: viper and envconfig derive their names. It reports
// whether the call is one of these.
func (u *usage) library(call *ast.CallExpr, f *types.Func) bool {
	if f.Pkg().Path() != ofViper && f.Pkg().Path() != ofEnvconfig || len(call.Args) == 0 {
		return false
	}
	first, ok := u.constant(call.Args[0])
	switch f.Name() {
	case "SetEnvPrefix":
		u.envPrefix = first
	case "BindEnv":
		for _, arg := range call.Args[1:] {
			if name, ok := u.constant(arg); ok {
				u.addInput(call, Input{Kind: InputEnv, Name: name})
			}
		}
		if ok && len(call.Args) == 1 {
			u.addInput(call, Input{Kind: InputEnv, Name: envName(u.envPrefix, first)})
		}
	case "Process", "MustProcess":
		if ok && len(call.Args) == 2 {
			u.envFields(call, first, u.info.Types[call.Args[1]].Type, 0)
		}
	}
	return true
}

func envName(prefix, name string) string {
	if prefix != "" {
		name = prefix + "_" + name
	}
	return strings.ToUpper(name)
}

// words matches the places where envconfig separates the words of a field's name.
var words = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// maxNested bounds structs within structs, which may refer to each other.
const maxNested = 4

// envFields reports the variables of the fields of a struct, as envconfig names them.
func (u *usage) envFields(at ast.Node, prefix string, t types.Type, depth int) {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth > maxNested {
		return
	}
	for i := range s.NumFields() {
		f, tag := s.Field(i), reflect.StructTag(s.Tag(i))
		if !f.Exported() || tag.Get("ignored") == "true" {
			continue
		}
		own := f.Name()
		if tag.Get("split_words") == "true" {
			own = words.ReplaceAllString(own, "${1}_${2}")
		}
		name := envName(prefix, cmp.Or(tag.Get("envconfig"), own))
		if _, nested := f.Type().Underlying().(*types.Struct); nested {
			if f.Embedded() {
				name = prefix
			}
			u.envFields(at, name, f.Type(), depth+1)
			continue
		}
		u.addInput(at, Input{Kind: InputEnv, Name: name, Default: tag.Get("default")})
	}
}
