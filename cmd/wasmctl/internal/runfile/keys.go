package runfile

import (
	"encoding/csv"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// moduleKey is the argument of run, which has no flag.
const moduleKey = "module"

// KeyOf returns the key of a flag: its name in lower camel case.
func KeyOf(flag string) string {
	words := strings.Split(flag, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// keys returns the keys of flags, and the flag of each.
func keys(f *pflag.FlagSet) map[string]*pflag.Flag {
	all := map[string]*pflag.Flag{}
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			all[KeyOf(flag.Name)] = flag
		}
	})
	return all
}

// values reads a mapping of keys of flags, except those not allowed here, and
// of extra keys that are single paths.
func (p *parser) values(n *yaml.Node, f *pflag.FlagSet, except []string, extra ...string) Values {
	if n == nil || strictyaml.IsNull(n) {
		return nil
	}
	flags := keys(f)
	for _, key := range except {
		delete(flags, key)
	}
	fields := p.Mapping(n, append(slices.Sorted(maps.Keys(flags)), extra...))
	out := Values{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		node := fields[key]
		if slices.Contains(extra, key) {
			if text, ok := p.scalar(node, key); ok {
				out[key] = []string{p.rebase(text)}
			}
			continue
		}
		if list, ok := p.value(node, key, flags[key]); ok {
			out[flags[key].Name] = list
		}
	}
	return out
}

// value reads the value of one flag, and checks that the flag takes it.
func (p *parser) value(n *yaml.Node, key string, flag *pflag.Flag) (list []string, ok bool) {
	switch typeOf(flag) {
	case typeMap:
		list, ok = p.pairs(n, key)
	case typeList:
		items := []*yaml.Node{n}
		if n.Kind != yaml.ScalarNode {
			items = p.Sequence(n, key, MaxList)
		}
		ok = true
		for _, item := range items {
			text, good := p.scalar(item, key)
			list, ok = append(list, text), ok && good
		}
	default:
		var text string
		text, ok = p.scalar(n, key)
		list = []string{text}
	}
	if !ok {
		return nil, false
	}
	if IsPath(flag) {
		for i := range list {
			list[i] = p.rebase(list[i])
		}
	}
	if err := check(flag, list); err != nil {
		p.Bad(n, "%s: %w", key, err)
		return nil, false
	}
	return list, true
}

// rebase makes a path that is relative to the file one that is relative to
// where the process runs.
func (p *parser) rebase(path string) string {
	if path == "" || filepath.IsAbs(path) || oci.IsRef(path) {
		return path
	}
	return filepath.Join(p.dir, path)
}

// IsPath reports whether a flag names a file or a folder: those that complete
// as such.
func IsPath(flag *pflag.Flag) bool {
	_, file := flag.Annotations[cobra.BashCompFilenameExt]
	_, dir := flag.Annotations[cobra.BashCompSubdirsInDir]
	return file || dir
}

// The forms that a value has in a file.
const (
	typeList = "array"
	typeMap  = "object"
	typeBool = "boolean"
	typeInt  = "integer"
	typeText = "string"
)

// typeOf returns the form of a flag's value.
func typeOf(flag *pflag.Flag) string {
	switch t := flag.Value.Type(); {
	case strings.HasPrefix(t, "stringTo"):
		return typeMap
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

// check tries a value on a copy of a flag's value that is discarded.
func check(flag *pflag.Flag, list []string) error {
	want, typed := wants[flag.Value.Type()]
	if !typed {
		return nil // text: its user validates it
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

// set sets a flag to the values that were read for it.
func set(f *pflag.FlagSet, flag *pflag.Flag, list []string) error {
	if many, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return many.Replace(list)
	}
	for _, text := range list {
		if typeOf(flag) == typeMap {
			text = pair(text)
		}
		if err := f.Set(flag.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// pair writes key=value so that pflag reads it as one pair, whatever is in it.
func pair(text string) string {
	if strings.Count(text, "=") == 1 {
		return text
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{text}) // to memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
