// SPDX-License-Identifier: Apache-2.0

// Package runfile parses the file of wasmctl run -f, which lists the controllers of a process. An entry
// of the list is a ControllerSpec in YAML. The options of the process are its flags, with the same names
// in lower camel case.
//
//	apiVersion: wasmctl.dev/v1
//	kind: Controllers
//	process:
//	  workers: 16
//	defaults:
//	  limits: {timeout: 10s}
//	controllers:
//	- name: web
//	  module: web.wasm
//	  for: webapps.example.dev
//
// The package does no I/O. It takes bytes and environment variables, and returns values or errors with
// their lines.
package runfile

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/strictyaml"
)

// Header of a file.
const (
	APIVersion = "wasmctl.dev/v1"
	Kind       = "Controllers"
)

// Bounds of a file: MaxControllers is the maximum number of controllers, and MaxList the maximum number
// of entries in a list or mapping.
const (
	MaxControllers = 1000
	MaxList        = 200
)

// Format defines the keys that a file may have.
type Format struct {
	// Process has the flags for the keys of the process. Parse does not change them.
	Process *pflag.FlagSet
	// Fields are the fields of a controller.
	Fields []Field
}

// Field is a field of a ControllerSpec.
type Field struct {
	Path string // below the controller
	Help string
	// Former is the key of the field in an older format, for suggestions.
	Former string
	// IsPath reports whether the field is the path of a file.
	IsPath bool
}

// File is the content of a file.
type File struct {
	// Process are the values of the process's flags.
	Process Values
	// Controllers are in the order of the file. Their names are unique.
	Controllers []Controller
}

// Controller is one controller of a file.
type Controller struct {
	// Spec contains the defaults of the file, but not those of a ControllerSpec.
	Spec v1alpha1.ControllerSpec
	Line int // of its beginning

	at map[string]*yaml.Node // the nodes of fields by path, including those from the defaults
}

// Env looks up a variable of the environment.
type Env func(name string) (value string, ok bool)

// Parse parses a file. path is the path for messages, and relative paths in the file are relative to its
// directory. The error joins all errors in the file, each with path:line:column. For an unknown key, it
// suggests the most similar one.
func Parse(path string, content []byte, format Format, env Env) (*File, error) {
	p := &parser{Reader: strictyaml.Reader{Path: path}, dir: filepath.Dir(path), format: format, env: env}
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

// file reads the root mapping of a file.
func (p *parser) file(root *yaml.Node) *File {
	f := &File{}
	fields := p.Mapping(root, []string{"apiVersion", "kind", "process", "defaults", "controllers"})
	p.Constant(root, fields["apiVersion"], "apiVersion", APIVersion)
	p.Constant(root, fields["kind"], "kind", Kind)
	f.Process = p.values(fields["process"], p.format.Process)
	list := fields["controllers"]
	if list == nil && root.Kind != yaml.MappingNode {
		return f
	}
	if list == nil {
		p.Bad(root, "controllers: is missing: list at least one, with name and module")
		return f
	}
	defaults := p.defaults(fields["defaults"])
	names := map[string]int{}
	for _, n := range p.Sequence(list, "controllers", MaxControllers) {
		c := p.controller(n, defaults)
		if line, taken := names[c.Spec.Name]; taken && c.Spec.Name != "" {
			p.Bad(n, "name: %q is also the name of the controller in line %d", c.Spec.Name, line)
		}
		names[c.Spec.Name] = n.Line
		f.Controllers = append(f.Controllers, c)
	}
	if len(f.Controllers) == 0 && list.Kind == yaml.SequenceNode {
		p.Bad(list, "controllers: is empty")
	}
	return f
}

// entry is a mapping that the parser has read: a controller, or the defaults of all.
type entry struct {
	node  *yaml.Node
	value any                   // in the form of JSON
	at    map[string]*yaml.Node // the nodes of its fields by path
}

func (p *parser) entry(n *yaml.Node) entry {
	e := entry{node: n, at: map[string]*yaml.Node{}}
	p.at = e.at
	e.value = p.typed(n, reflect.TypeFor[v1alpha1.ControllerSpec](), "")
	return e
}

// defaults reads the defaults of all controllers.
func (p *parser) defaults(n *yaml.Node) entry {
	if n == nil || strictyaml.IsNull(n) {
		return entry{}
	}
	e := p.entry(n)
	if at := e.at["name"]; at != nil {
		p.Bad(at, "name: unknown key: each controller has a name of its own")
	}
	return e
}

// controller reads one controller of the list.
func (p *parser) controller(n *yaml.Node, defaults entry) Controller {
	wrong := p.Wrong()
	own := p.entry(n)
	c := Controller{Line: n.Line, at: map[string]*yaml.Node{"": n}}
	for _, e := range []entry{defaults, own} {
		maps.Copy(c.at, e.at)
		if e.node != nil && p.Wrong() == wrong {
			p.fill(e.node, e.value, &c.Spec)
		}
	}
	if p.Wrong() > wrong {
		return c // name and module may be missing only because of the errors so far
	}
	if c.Spec.Name == "" {
		p.Bad(n, "name: is missing: each controller of a file needs a name")
	}
	if c.Spec.Module.String() == "" {
		p.Bad(n, "module: is missing: the path of the WebAssembly module")
	}
	return c
}

// Where returns the position of the field with this path, as line:column. If the file does not have the
// field, it is the position of the closest field above it.
func (c *Controller) Where(path string) string {
	for c.at[path] == nil && path != "" {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return fmt.Sprintf("%d:%d", c.at[path].Line, c.at[path].Column)
}

// Equal reports whether two controllers have the same spec. Their positions in the file do not matter.
func (c *Controller) Equal(o *Controller) bool { return reflect.DeepEqual(c.Spec, o.Spec) }
