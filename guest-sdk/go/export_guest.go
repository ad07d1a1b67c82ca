// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || tinygo.wasm

package wasmctl

import (
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/garbage"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/mem"
)

// This file is not called export_wasm.go, because that name would exclude it
// from TinyGo's wasm-unknown target, whose GOARCH is not wasm.
//
// No function here recovers from a panic. TinyGo cannot, and a panic leaves the
// memory of the instance in an unknown state. So a panic ends the call as a
// trap, with its message on stderr for the host to show, and the host discards
// the instance.

// instance is the only guest of this module. It references all memory that the
// host reads and writes, which protects that memory from the garbage collector.
var instance = guest{host: imports.Default}

// ModuleLog returns the log of the module for code outside of calls: init
// functions and main. Within a call, use the log of its Context.
func ModuleLog() *Logger { return &Logger{g: &guest{host: imports.Default}} }

//go:wasmexport reconciler_abi_1
func exportABI() {}

//go:wasmexport buffer
func exportBuffer(size uint32) uint32 { return mem.Address(instance.reserve(size)) }

//go:wasmexport reconcile
func exportReconcile(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Reconcile, ptr, size)) }

//go:wasmexport error_policy
func exportErrorPolicy(ptr, size uint32) uint64 { return mem.Pack(enter(entry.ErrorPolicy, ptr, size)) }

//go:wasmexport finalize
func exportFinalize(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Finalize, ptr, size)) }

//go:wasmexport map
func exportMap(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Map, ptr, size)) }

//go:wasmexport configure
func exportConfigure(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Configure, ptr, size)) }

//go:wasmexport validate
func exportValidate(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Validate, ptr, size)) }

//go:wasmexport default
func exportDefault(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Default, ptr, size)) }

//go:wasmexport convert
func exportConvert(ptr, size uint32) uint64 { return mem.Pack(enter(entry.Convert, ptr, size)) }

//go:wasmexport filter
func exportFilter(ptr, size uint32) uint32 {
	instance.reconciler, instance.refused = current()
	if instance.keep(message(ptr, size)) {
		return 1
	}
	return 0
}

//go:wasmexport describe
func exportDescribe() uint64 {
	r, err := current()
	if r == nil {
		panic("wasmctl: " + err.Error())
	}
	instance.result = describe(r)
	return mem.Pack(instance.result)
}

// enter runs an entry call.
func enter(name string, ptr, size uint32) []byte {
	instance.reconciler, instance.refused = current()
	result := instance.call(name, message(ptr, size))
	garbage.AfterCall(hasFuelLimit)
	return result
}

// hasFuelLimit reports whether a limit bounds the work of the current call.
func hasFuelLimit() bool { return instance.host.Budget(int32(BudgetFuel)) >= 0 }

// message returns the request, which the host has written into the block that
// buffer returned, or nil if ptr and size lie outside of that block.
func message(ptr, size uint32) []byte {
	block := instance.block.Grow(instance.block.Cap())
	if len(block) == 0 || ptr != mem.Address(block) || uint64(size) > uint64(len(block)) {
		return nil
	}
	return block[:size]
}
