// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
	"github.com/wasmctl/wasmctl/host/strictjson"
)

// FileName is the project file, in the project's folder. It is optional.
const FileName = "wasmctl.yaml"

// File is the content of the project file. Options override it.
type File struct {
	// Toolchain is the toolchain to build with. If empty, the files in the folder decide.
	Toolchain string `json:"toolchain,omitempty"`
	// Output is the module's file, relative to the folder. If empty, it is the project's name and
	// ".wasm".
	Output string `json:"output,omitempty"`
	// Target is the Rust target. If empty, it is DefaultTarget.
	Target string `json:"target,omitempty"`
	// Roles are files with the roles that the program is deployed with, relative to the folder.
	Roles []string `json:"roles,omitempty"`
	// Limits are the limits that each controller requests. Controllers have those of single ones, by
	// name, which override them.
	Limits      v1alpha1.Limits            `json:"limits,omitempty"`
	Controllers map[string]controllerInput `json:"controllers,omitempty"`
	// Objects are files with the objects that main of an operator sees, relative to the folder.
	Objects []string `json:"objects,omitempty"`
	// Files maps paths in the module to files, relative to the folder. Namespace is the content of
	// the service account's file.
	Files     map[string]string `json:"files,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	// Main is the input of an operator's main.
	operator.Main
	// GoFlags are flags for go build.
	GoFlags
}

// readFile reads the project file of a folder. Without the file, it returns an empty one. An
// unknown key is an error.
func readFile(dir string) (File, error) {
	var f File
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		b, err = yaml.YAMLToJSONStrict(b)
	}
	if err == nil {
		err = strictjson.UnmarshalKnown(b, &f)
	}
	if err == nil {
		_, err = ParseToolchain(f.Toolchain)
	}
	if err == nil {
		err = f.checkPaths(dir)
	}
	if err == nil {
		err = f.checkLimits()
	}
	if err != nil {
		return f, fmt.Errorf("project[%s]: %s: %w", dir, FileName, err)
	}
	return f, nil
}

// checkPaths checks that the files that the project file names are within the project, also if they are
// links: the folder of its go.mod, or dir. Otherwise, a project from elsewhere could put files of this
// machine into a module, or replace them.
func (f *File) checkPaths(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	top := cmp.Or(moduleFolder(abs), abs)
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written
	for _, name := range slices.Concat([]string{f.Output}, f.Roles, f.Objects, slices.Sorted(maps.Values(f.Files))) {
		rel, err := filepath.Rel(top, filepath.Join(abs, name))
		if err == nil {
			_, err = root.Stat(rel)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("file[%s]: must be within %s: %w", name, top, err)
		}
	}
	return nil
}
