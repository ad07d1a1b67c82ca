// Package runfile reads the file of wasmctl run -f: which controllers a process
// runs, and how. It knows no key of its own: what a controller or the process
// may be told are their flags, under the same names in lower camel case, so that
// a file can say whatever the flags can, and nothing else.
//
//	apiVersion: wasmctl.dev/v1
//	kind: Controllers
//	process:
//	  workers: 16
//	defaults:
//	  timeout: 10s
//	controllers:
//	- name: web
//	  module: web.wasm
//	  for: webapps.example.dev
//
// It reads and writes nothing: bytes and environment come in, values or errors
// with their lines go out.
package runfile

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// Header of a file.
const (
	APIVersion = "wasmctl.dev/v1"
	Kind       = "Controllers"
)

// Bounds of a file: MaxControllers it may have, and MaxList entries each list and
// mapping of a key.
const (
	MaxControllers = 1000
	MaxList        = 200
)

// Flags are the flag sets whose flags are the keys of a file. They are asked for
// names and types, and not changed.
type Flags struct {
	Process    *pflag.FlagSet
	Controller *pflag.FlagSet
}

// File is what a file says.
type File struct {
	// Process are the values of the process's flags.
	Process Values
	// Controllers are in the order of the file; their names are unique.
	Controllers []Controller
}

// Controller is one controller of a file.
type Controller struct {
	Name   string
	Module string // a path; a relative one was relative to the file
	Line   int    // where it begins
	// Values are those of its flags, the file's defaults included.
	Values Values
}

// Values are the values of flags, by the name of the flag.
type Values map[string][]string

// Env looks up a variable of the environment.
type Env func(name string) (value string, ok bool)

// Parse reads a file. path is for messages, and relative paths in the file are
// relative to its folder. The error joins everything that is wrong, each as
// path:line:column, with the nearest key where one is not known.
func Parse(path string, content []byte, flags Flags, env Env) (*File, error) {
	p := &parser{Reader: strictyaml.Reader{Path: path}, dir: filepath.Dir(path), flags: flags, env: env}
	roots := p.Documents(content, 1)
	if len(roots) == 0 && p.Wrong() == 0 {
		return nil, fmt.Errorf("%s: the file is empty: want apiVersion: %s, kind: %s and controllers", path, APIVersion, Kind)
	}
	if p.Wrong() > 0 {
		return nil, p.Err()
	}
	f := p.file(roots[0])
	if p.Wrong() > 0 {
		return nil, p.Err()
	}
	return f, nil
}

// file reads the mapping that a file is.
func (p *parser) file(root *yaml.Node) *File {
	f := &File{}
	fields := p.Mapping(root, []string{"apiVersion", "kind", "process", "defaults", "controllers"})
	p.Constant(root, fields["apiVersion"], "apiVersion", APIVersion)
	p.Constant(root, fields["kind"], "kind", Kind)
	f.Process = p.values(fields["process"], p.flags.Process, nil)
	defaults := p.values(fields["defaults"], p.flags.Controller, []string{"name"})
	list := fields["controllers"]
	if list == nil && root.Kind != yaml.MappingNode {
		return f
	}
	if list == nil {
		p.Bad(root, "controllers: is missing: list at least one, with name and module")
		return f
	}
	names := map[string]int{}
	for _, n := range p.Sequence(list, "controllers", MaxControllers) {
		c := p.controller(n, defaults)
		if line, taken := names[c.Name]; taken && c.Name != "" {
			p.Bad(n, "name: %q is also the name of the controller in line %d", c.Name, line)
		}
		names[c.Name] = n.Line
		f.Controllers = append(f.Controllers, c)
	}
	if len(f.Controllers) == 0 && list.Kind == yaml.SequenceNode {
		p.Bad(list, "controllers: is empty")
	}
	return f
}

// controller reads one controller of the list.
func (p *parser) controller(n *yaml.Node, defaults Values) Controller {
	c := Controller{Line: n.Line, Values: Values{}}
	maps.Copy(c.Values, defaults)
	wrong := p.Wrong()
	own := p.values(n, p.flags.Controller, nil, moduleKey)
	first := func(flag string) string {
		if v := own[flag]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	c.Name, c.Module = first("name"), first(moduleKey)
	delete(own, moduleKey)
	maps.Copy(c.Values, own)
	if p.Wrong() > wrong {
		return c // what is missing below may be what could not be read
	}
	if c.Name == "" {
		p.Bad(n, "name: is missing: each controller of a file needs a name")
	}
	if c.Module == "" {
		p.Bad(n, "module: is missing: the path of the WebAssembly module")
	}
	return c
}

// Apply sets flags to values. Those of the set that were changed before, by the
// command line, stay. The error says which value a flag does not take.
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
		if err := set(f, flag, v[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Equal reports whether two controllers are told the same.
func (c *Controller) Equal(o *Controller) bool {
	return c.Name == o.Name && c.Module == o.Module && maps.EqualFunc(c.Values, o.Values, slices.Equal[[]string])
}
