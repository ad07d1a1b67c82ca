// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/wasmctl/wasmctl/host/internal/vm"
)

var (
	// ErrUnsuited matches the error of a directory in which a file of code would not save
	// memory.
	ErrUnsuited = errors.New("directory does not suit")
	// errUnknown reports that wazero has changed, or that it interprets.
	errUnknown = errors.New("the fields of wazero's compiled module are unknown")
)

// fields are the fields of wazero that Install sets. Wazero has no functions for them, so
// they are found by name. TestWazero_HasTheAssumedFields checks the version in go.mod.
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

// Install gives code that Map has mapped to a module that was just loaded with the stub
// of Split. Wazero unmaps the code when the module is closed. No other goroutine may use
// the runtime of the module meanwhile.
//
// This is safe because the fields have the types that are asserted and belong to a
// variable, so the garbage collector sees the writes. No instance exists yet, so nothing
// has executed code of the module or looked up an address in it. Addresses in the code
// are relative to its start, except those of source lines, which are moved here. Wazero
// unmaps the field's memory with unix.Munmap, which knows it from Map. An offset outside
// of the code panics, because wazero indexes the slice.
func Install(module vm.Compiled, code []byte) error {
	f, ok := fieldsOf(module)
	if !ok || disabled.Load() || len(f.code.Bytes()) != stubSize {
		return errUnknown
	}
	stub := f.code.Bytes()
	moved := uintptr(unsafe.Pointer(unsafe.SliceData(code))) - uintptr(unsafe.Pointer(unsafe.SliceData(stub)))
	for i := range f.lines.Len() {
		*(*uintptr)(f.lines.Index(i).Addr().UnsafePointer()) += moved
	}
	*(*[]byte)(f.code.Addr().UnsafePointer()) = code
	_ = Unmap(stub) // a failure costs one page
	return nil
}

// Size returns the length of the machine code of a module, in bytes. It is 0 if the fields of
// wazero are unknown.
func Size(module vm.Compiled) int64 {
	if f, ok := fieldsOf(module); ok {
		return int64(f.code.Len())
	}
	return 0
}

func sliceOf(v reflect.Value, elem reflect.Kind) bool {
	return v.Kind() == reflect.Slice && v.CanAddr() && v.Type().Elem().Kind() == elem
}

// pointed follows interfaces and pointers to the variable behind them.
func pointed(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// field returns a field of a struct, or the zero Value.
func field(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}
