// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// Values are the values of flags, by the name of the flag.
type Values map[string][]string

// KeyOf returns the key of a flag: its name in lower camel case.
func KeyOf(flag string) string {
	words := strings.Split(flag, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// keys returns the visible flags by their keys.
func keys(f *pflag.FlagSet) map[string]*pflag.Flag {
	all := map[string]*pflag.Flag{}
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			all[KeyOf(flag.Name)] = flag
		}
	})
	return all
}

// values reads a mapping from keys of flags to their values.
func (p *parser) values(n *yaml.Node, f *pflag.FlagSet) Values {
	if n == nil || strictyaml.IsNull(n) {
		return nil
	}
	flags := keys(f)
	fields := p.Mapping(n, slices.Sorted(maps.Keys(flags)))
	out := Values{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if list, ok := p.value(fields[key], key, flags[key]); ok {
			out[flags[key].Name] = list
		}
	}
	return out
}

// value reads the value of one flag, and checks that the flag accepts it.
func (p *parser) value(n *yaml.Node, key string, flag *pflag.Flag) (list []string, ok bool) {
	items := []*yaml.Node{n}
	if typeOf(flag) == typeList && n.Kind != yaml.ScalarNode {
		items = p.Sequence(n, key, MaxList)
	}
	ok = true
	for _, item := range items {
		text, good := p.scalar(item, key)
		if isPath(flag) {
			text = p.rebase(text)
		}
		list, ok = append(list, text), ok && good
	}
	if !ok {
		return nil, false
	}
	if err := check(flag, list); err != nil {
		p.Bad(n, "%s: %w", key, err)
		return nil, false
	}
	return list, true
}

// isPath reports whether a flag is the path of a file or directory, according to its completion.
func isPath(flag *pflag.Flag) bool {
	_, file := flag.Annotations[cobra.BashCompFilenameExt]
	_, dir := flag.Annotations[cobra.BashCompSubdirsInDir]
	return file || dir
}

// Types of values in a file, as in JSON Schema.
const (
	typeList = "array"
	typeMap  = "object"
	typeBool = "boolean"
	typeInt  = "integer"
	typeText = "string"
)

// typeOf returns the type of a flag's value.
func typeOf(flag *pflag.Flag) string {
	switch t := flag.Value.Type(); {
	case strings.HasSuffix(t, "Slice"), strings.HasSuffix(t, "Array"):
		return typeList
	case t == "bool":
		return typeBool
	case t == "count", strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return typeInt
	}
	return typeText
}

var wants = map[string]string{
	"duration": "a duration, such as 1m30s", "bool": "true or false", "count": "a whole number", "int": "a whole number", "int64": "a whole number",
	"uint": "a whole number, not negative", "uint64": "a whole number, not negative", "float64": "a number", "float32": "a number",
}

// check validates a value with a temporary flag of the same type.
func check(flag *pflag.Flag, list []string) error {
	want, typed := wants[flag.Value.Type()]
	if !typed {
		return nil // the options validate texts
	}
	trial := pflag.NewFlagSet("", pflag.ContinueOnError)
	switch flag.Value.Type() {
	case "duration":
		trial.Duration("x", 0, "")
	case "bool":
		trial.Bool("x", false, "")
	case "float64", "float32":
		trial.Float64("x", 0, "")
	case "uint", "uint64":
		trial.Uint64("x", 0, "")
	default:
		trial.Int("x", 0, "")
	}
	if err := trial.Set("x", list[0]); err != nil {
		return fmt.Errorf("%q: want %s", list[0], want)
	}
	return nil
}

// Apply sets flags to the values, except for flags that the command line has already set. It returns an
// error for values that a flag does not accept.
func (v Values) Apply(f *pflag.FlagSet) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(v)) {
		flag := f.Lookup(name)
		if flag == nil {
			return fmt.Errorf("BUG: no flag --%s", name)
		}
		if flag.Changed {
			continue
		}
		if many, ok := flag.Value.(pflag.SliceValue); ok {
			flag.Changed = true
			errs = append(errs, many.Replace(v[name]))
			continue
		}
		errs = append(errs, f.Set(name, v[name][0]))
	}
	return errors.Join(errs...)
}
