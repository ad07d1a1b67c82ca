// SPDX-License-Identifier: Apache-2.0

// Package layout contains everything that relies on memory layouts and file formats that no
// API promises: those of wazero's compiled modules, and those of the random generators in
// a guest's memory. docs/wazero-internals.md lists each assumption, the test that checks
// it, and what happens without it.
//
// # Compiled code
//
// The machine code of an operator has tens of megabytes, of which a few are ever executed.
// The code therefore lies in a file without a name: the system reads the pages that are
// executed, and need not keep the others in memory. Split divides a cache file of wazero,
// wazero loads a stub in place of the code, Map maps the code, and Install gives it to
// wazero.
//
// # Random generators
//
// Instances that start from one image have the same memory, and so the same generators in
// the same state: all would draw the same names and delays. The host knows the random
// bytes and the times that start code received. A generator of Go that was seeded with
// them has a state of at least 32 bytes that occurs nowhere else. Find returns the places
// of such states; each new instance gets random bytes there. Random bytes for anything
// else, such as a key, cannot be replaced, so Find reports an error.
package layout

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// disabled is set while the assumptions of this package are disabled.
var disabled atomic.Bool

// Disable disables all assumptions of this package, as a wazero with other fields does,
// until the returned function is called. The host then loads all code into memory, and
// each instance runs the start code of its module. Tests use it.
func Disable() (enable func()) {
	disabled.Store(true)
	return func() { disabled.Store(false) }
}

// emptyModule is the smallest module with a function, which wazero compiles: the type
// () -> (), a function of this type, and its empty body.
const emptyModule = "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x0a\x04\x01\x02\x00\x0b"

// Known reports whether the compiled modules of this wazero have the fields that Install
// sets.
func Known() bool { return !disabled.Load() && known() }

var known = sync.OnceValue(func() bool {
	ctx := context.Background()
	runtime := vm.NewRuntime(ctx, nil)
	defer func() { _ = runtime.Close(ctx) }() // nothing is open whose closing could fail
	module, err := runtime.CompileModule(ctx, []byte(emptyModule))
	if err != nil {
		return false
	}
	_, ok := fieldsOf(module)
	return ok
})
