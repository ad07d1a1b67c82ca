// Package codefile moves compiled code from the memory of the process into a file
// without a name. Of the code of an operator, tens of megabytes, a few are ever
// executed: the system reads those from the file, and need not keep the rest.
package codefile

import (
	"errors"
	"reflect"

	"github.com/tetratelabs/wazero"
)

// MinSize is the size of code, in bytes, from which on a file is worth it.
const MinSize = 128 << 10

var (
	// ErrUnsuited is matched by the error of a directory in which the code would be no
	// better off. The code is where it was.
	ErrUnsuited = errors.New("directory does not suit")
	// ErrLost is matched by the error that leaves no code in its place: the module has
	// to be closed.
	ErrLost = errors.New("code lost")
)

// Of returns the machine code of a module; nil where it is not found: in an interpreter,
// or where wazero has changed. wazero has no function that tells it, so its fields are
// read by name, which a test holds for the version in go.mod. Nobody else may use the
// runtime of the module meanwhile.
func Of(module wazero.CompiledModule) []byte {
	m := pointed(reflect.ValueOf(module))
	id, modules := field(pointed(field(m, "module")), "ID"), field(pointed(field(m, "compiledEngine")), "compiledModules")
	if modules.Kind() != reflect.Map || !id.IsValid() || id.Type() != modules.Type().Key() {
		return nil
	}
	executables := pointed(field(pointed(field(pointed(modules.MapIndex(id)), "compiledModule")), "executables"))
	code := field(executables, "executable")
	if code.Kind() != reflect.Slice || code.Type().Elem().Kind() != reflect.Uint8 {
		return nil
	}
	return code.Bytes()
}

// pointed is the variable that interfaces and pointers lead to.
func pointed(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// field is a field of a struct, or none.
func field(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}
