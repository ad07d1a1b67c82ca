// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// templates are the files of a new project: the common ones, and those of its language, which
// override them. Words in capitals in a path are placeholders.
//
//go:embed templates
var templates embed.FS

// checkout is the repository that a development build was built from. make build sets it through
// the linker. It is empty in a release.
var checkout string

// New configures a new project.
type New struct {
	// Dir is the folder to create. Its last part is the project's name. It may exist if it is
	// empty.
	Dir string
	// Lang is the language. TinyGo means Go that is built with TinyGo.
	Lang Toolchain
	// Typed creates a project on controller-runtime, in the layout of kubebuilder, with Go types
	// for the kinds. It requires Go.
	Typed bool
	// Webhooks adds webhooks that set defaults and validate. They need a project that is not
	// Typed.
	Webhooks bool
	// Kind is the kind to reconcile, for example "Widget.example.dev/v1". If empty, it is derived
	// from the name.
	Kind string
	// Release is the version of wasmctl, "v1.2.3", whose SDK the project requires. SDK is the
	// folder of a checkout whose SDK it uses instead. If both are empty, it is the checkout that
	// this wasmctl was built from.
	Release, SDK string
}

// ErrBadName matches the errors for an unusable name or kind, and for a folder that is not empty.
// Nothing was written in these cases.
var ErrBadName = errors.New("cannot create the project")

// values are the variables of the templates.
type values struct {
	Name, Lang           string
	Kind, Group, Version string
	Singular, Plural     string
	SDK, SDKVersion      string // SDK is the path of the SDK; if empty, the release is used
	SDKCargo             string // the release in Cargo's form
	UnitTest             string
	Crate                string // Name in Rust's form
	Typed, Webhooks      bool
	CRD                  string // the file of the CRD, or its folder
}

var (
	nameForm  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$`)
	kindForm  = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*)\.([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)/(v[0-9]+((alpha|beta)[0-9]+)?)$`)
	wordStart = regexp.MustCompile(`(^|-)[a-z0-9]`)
)

// Create creates the project and returns its files, by name relative to the folder. It never
// overwrites a file.
func (n New) Create() ([]string, error) {
	v, err := n.values()
	if err != nil {
		return nil, fmt.Errorf("project[%s]: %w", n.Dir, err)
	}
	files, err := v.render()
	if err != nil {
		return nil, fmt.Errorf("project[%s]: %w", n.Dir, err)
	}
	if err := free(n.Dir); err != nil {
		return nil, fmt.Errorf("project[%s]: %w", n.Dir, err)
	}
	names := make([]string, 0, len(files))
	for name, text := range files {
		if err := writeNew(filepath.Join(n.Dir, filepath.FromSlash(name)), text); err != nil {
			return nil, fmt.Errorf("project[%s]: %w", n.Dir, err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// free returns an error if the folder is not empty.
func free(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%w: the directory exists and contains %q; choose another name", ErrBadName, entries[0].Name())
	}
	return nil
}

func writeNew(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// values computes the variables of the templates.
func (n New) values() (*values, error) {
	name := n.Name()
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("%w: name %q: want at most 53 lower-case letters, digits and dashes, starting with a letter", ErrBadName, name)
	}
	v := &values{Name: name, Lang: string(n.Lang), Crate: strings.ReplaceAll(name, "-", "_"), Typed: n.Typed, Webhooks: n.Webhooks, CRD: "crd.yaml"}
	kind := n.Kind
	if kind == "" {
		kind = camel(name) + ".example.dev/v1"
	}
	m := kindForm.FindStringSubmatch(kind)
	if m == nil {
		return nil, fmt.Errorf("%w: kind %q: want one like Widget.example.dev/v1: the kind in CamelCase, the group, the version", ErrBadName, kind)
	}
	v.Kind, v.Group, v.Version = m[1], m[2], m[6]
	v.Singular = strings.ToLower(v.Kind)
	v.Plural = kinds.Plural(v.Kind)
	if err := v.checkNames(); err != nil {
		return nil, fmt.Errorf("%w: kind %q: %w", ErrBadName, kind, err)
	}
	if n.Typed { // wasmctl build provides the dependencies of its modules
		v.UnitTest, v.CRD = "go test ./...", "config/crd/bases"
		return v, nil
	}
	return v, n.sdk(v)
}

// checkNames checks the names of the CustomResourceDefinition as the API server does.
func (v *values) checkNames() error {
	for _, name := range []struct {
		what     string
		problems []string
	}{
		{"the kind of its list, " + v.Kind + "List", validation.IsDNS1035Label(v.Singular + "list")},
		{"its plural, " + v.Plural, validation.IsDNS1035Label(v.Plural)},
		{"its group, " + v.Group, validation.IsDNS1123Subdomain(v.Group)},
		{"the name of its CustomResourceDefinition", validation.IsDNS1123Subdomain(v.Plural + "." + v.Group)},
	} {
		if len(name.problems) > 0 {
			return fmt.Errorf("%s: %s", name.what, name.problems[0])
		}
	}
	return nil
}

// sdk sets the variables about the SDK.
func (n New) sdk(v *values) error {
	folder := "go"
	v.UnitTest = "go test ."
	if n.Lang == Rust {
		folder, v.UnitTest = "rust", "cargo test"
	}
	root := n.SDK
	if root == "" && n.Release == "" {
		if root = checkout; root == "" {
			return fmt.Errorf("%w: this development build does not know its checkout: set it with --sdk, or build with make build", ErrBadName)
		}
	}
	if root == "" {
		v.SDKVersion, v.SDKCargo = n.Release, strings.TrimPrefix(n.Release, "v")
		return nil
	}
	abs, err := filepath.Abs(filepath.Join(root, "guest-sdk", folder))
	if err != nil {
		return err
	}
	if !exists(abs) {
		return fmt.Errorf("%w: %s does not exist: set the checkout of wasmctl with --sdk", ErrBadName, abs)
	}
	v.SDK, v.SDKVersion = filepath.ToSlash(abs), "v0.1.0"
	return nil
}

// render returns the files.
func (v *values) render() (map[string][]byte, error) {
	lang := v.Lang
	switch {
	case v.Typed:
		lang = "kubernetes"
	case lang == string(TinyGo):
		lang = string(Go)
	}
	parts := strings.NewReplacer("VERSION", v.Version, "GROUP", v.Group, "SINGULAR", v.Singular, "PLURAL", v.Plural)
	files := map[string][]byte{}
	for _, root := range []string{"templates/all", "templates/" + lang} {
		err := fs.WalkDir(templates, root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := parts.Replace(strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl"))
			if name == "gitignore" {
				name = ".gitignore"
			}
			text, err := v.execute(file)
			if len(text) > 0 { // otherwise it belongs to other projects
				files[name] = text
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (v *values) execute(file string) ([]byte, error) {
	t, err := template.New(path.Base(file)).Option("missingkey=error").ParseFS(templates, file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, v)
	return b.Bytes(), err
}

// camel turns "my-widget" into "MyWidget".
func camel(name string) string {
	return wordStart.ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(strings.TrimPrefix(s, "-")) })
}

// Name returns the project's name.
func (n New) Name() string { return filepath.Base(filepath.Clean(n.Dir)) }
