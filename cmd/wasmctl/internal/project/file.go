package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
)

// FileName is the project file, in the project's folder. It is optional.
const FileName = "wasmctl.yaml"

// File is what the project file says. Options win over it.
type File struct {
	// Toolchain is how to build; empty means by what is in the folder.
	Toolchain string `json:"toolchain,omitempty"`
	// Output is the module's file, relative to the folder; empty means the
	// project's name and ".wasm".
	Output string `json:"output,omitempty"`
	// Target is the Rust target; empty means DefaultTarget.
	Target string `json:"target,omitempty"`
	// Roles are files with roles of an operator, relative to the folder.
	Roles []string `json:"roles,omitempty"`
	// Objects are files with what main of an operator sees, relative to the folder.
	Objects []string `json:"objects,omitempty"`
	// Files are those that the module has, by their paths in it: files relative to the
	// folder. Namespace is what the file of the service account says.
	Files     map[string]string `json:"files,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	// Main is what main of an operator gets.
	operator.Main
}

// readFile reads the project file of a folder; a folder without one has an empty
// one. A key that is not known is an error.
func readFile(dir string) (File, error) {
	var f File
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(b, &f)
	}
	if err == nil {
		_, err = ParseToolchain(f.Toolchain)
	}
	if err != nil {
		return f, fmt.Errorf("project[%s]: %s: %w", dir, FileName, err)
	}
	return f, nil
}

// ReplaceFile writes a file atomically for its readers.
func ReplaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already if all went well
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Chmod(0o644)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// CanReplace returns an error where ReplaceFile could not write a file.
func CanReplace(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}
