// Package codefile has compiled code in a file without a name instead of in the memory
// of the process. Of the code of an operator, tens of megabytes, a few are ever
// executed: the system reads those from the file, and need not keep the rest.
//
// Split parts what wazero has written of a module. Wazero loads a stub in the place of
// the code, Map maps the code, and Install gives it to wazero.
package codefile

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/wasmctl/wasmctl/host/internal/vm"
)

var (
	// ErrUnsuited is matched by the error of a directory in which the code would be no
	// better off than in memory.
	ErrUnsuited = errors.New("directory does not suit")
	// errUnknown says that wazero has changed, or that it interprets.
	errUnknown = errors.New("BUG: the fields of wazero's compiled module are unknown")
)

// fields are those of wazero that Install sets. Wazero has no functions for them, so
// they are found by name, which a test holds for the version in go.mod.
type fields struct {
	code  reflect.Value // the machine code, of bytes
	lines reflect.Value // addresses in the code that have a line in the source, of uintptr
}

func fieldsOf(module vm.Compiled) (f fields, ok bool) {
	m := pointed(reflect.ValueOf(module))
	id, modules := field(pointed(field(m, "module")), "ID"), field(pointed(field(m, "compiledEngine")), "compiledModules")
	if modules.Kind() != reflect.Map || !id.IsValid() || id.Type() != modules.Type().Key() {
		return f, false
	}
	compiled := pointed(field(pointed(modules.MapIndex(id)), "compiledModule"))
	f.code = field(pointed(field(compiled, "executables")), "executable")
	f.lines = field(field(compiled, "sourceMap"), "executableOffsets")
	return f, sliceOf(f.code, reflect.Uint8) && sliceOf(f.lines, reflect.Uintptr)
}

// Of returns the machine code of a module; nil where it is not found: in an interpreter,
// or where wazero has changed. Nobody else may use the runtime of the module meanwhile.
func Of(module vm.Compiled) []byte {
	f, ok := fieldsOf(module)
	if !ok {
		return nil
	}
	return f.code.Bytes()
}

// Install gives code that Map has mapped to a module that was just loaded with the stub
// of Split. Wazero unmaps it, once the module is closed. Nobody else may use the runtime
// of the module meanwhile.
//
// Safe: the fields have the types that are asserted, and are those of a variable. So the
// collector sees the writes. Nothing has executed code of the module or has asked for an
// address in it: both need an instance. The addresses in the code are offsets to its
// begin, but those of lines, which move along. Wazero unmaps what the field has by
// unix.Munmap, which knows it from Map. An offset that is not in the code panics, as
// wazero indexes the slice.
func Install(module vm.Compiled, code []byte) error {
	f, ok := fieldsOf(module)
	if !ok || len(f.code.Bytes()) != stubSize {
		return errUnknown
	}
	stub := f.code.Bytes()
	moved := uintptr(unsafe.Pointer(unsafe.SliceData(code))) - uintptr(unsafe.Pointer(unsafe.SliceData(stub)))
	for i := range f.lines.Len() {
		*(*uintptr)(f.lines.Index(i).Addr().UnsafePointer()) += moved
	}
	*(*[]byte)(f.code.Addr().UnsafePointer()) = code
	_ = Unmap(stub) // or else a page is lost
	return nil
}

func sliceOf(v reflect.Value, elem reflect.Kind) bool {
	return v.Kind() == reflect.Slice && v.CanAddr() && v.Type().Elem().Kind() == elem
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
