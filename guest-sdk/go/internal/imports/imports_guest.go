// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || tinygo.wasm

package imports

import (
	"unsafe"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/mem"
)

// This file is not called imports_wasm.go, because that name would exclude it
// from TinyGo's wasm-unknown target, whose GOARCH is not wasm.

// Op is an operation: a host function that takes a request and returns data.
// Each operation is a variable of its own, so that a module imports only those
// that it uses.
type Op struct {
	// Name is the name of the import.
	Name string
	call opFunc
}

type opFunc func(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

// The operations of ABI v1. They are function literals because TinyGo does not
// support imported functions as values.
var (
	APIGet      = Op{"api_get", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiGet(r, n, d, c) }}
	APIList     = Op{"api_list", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiList(r, n, d, c) }}
	APICreate   = Op{"api_create", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiCreate(r, n, d, c) }}
	APIUpdate   = Op{"api_update", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiUpdate(r, n, d, c) }}
	APIPatch    = Op{"api_patch", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiPatch(r, n, d, c) }}
	APIApply    = Op{"api_apply", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiApply(r, n, d, c) }}
	APIDelete   = Op{"api_delete", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return apiDelete(r, n, d, c) }}
	CacheGet    = Op{"cache_get", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return cacheGet(r, n, d, c) }}
	CacheList   = Op{"cache_list", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return cacheList(r, n, d, c) }}
	EventRecord = Op{"event_record", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return eventRecord(r, n, d, c) }}
	ConfigGet   = Op{"config_get", func(r unsafe.Pointer, n uint32, d unsafe.Pointer, c uint32) uint64 { return configGet(r, n, d, c) }}
)

//go:wasmimport reconciler_v1 api_get
func apiGet(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 api_list
func apiList(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 api_create
func apiCreate(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 api_update
func apiUpdate(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 api_patch
func apiPatch(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 api_apply
func apiApply(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 api_delete
func apiDelete(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 cache_get
func cacheGet(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 cache_list
func cacheList(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 event_record
func eventRecord(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 config_get
func configGet(req unsafe.Pointer, reqLen uint32, dst unsafe.Pointer, dstCap uint32) uint64

//go:wasmimport reconciler_v1 take
func take(dst unsafe.Pointer, off, dstCap uint32) int32

//go:wasmimport reconciler_v1 log
func log(level int32, msg unsafe.Pointer, msgLen uint32)

//go:wasmimport reconciler_v1 log_level
func logLevel() int32

//go:wasmimport reconciler_v1 metric
func metric(kind int32, name unsafe.Pointer, nameLen uint32, value float64) int32

//go:wasmimport reconciler_v1 cancelled
func cancelled() int32

//go:wasmimport reconciler_v1 budget
func budget(kind int32) int64

// WASI has the clocks and the random numbers. The SDK imports them itself because
// TinyGo's standard library has none on the target wasm-unknown.

//go:wasmimport wasi_snapshot_preview1 clock_time_get
func clockTimeGet(clock uint32, precision uint64, time unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(dst unsafe.Pointer, dstLen uint32) uint32

// Default is the host that this module runs in.
var Default Host = wasmHost{}

type wasmHost struct{}

// The callers of these functions hold the slices, so they stay alive during
// each call.

// Call implements Host.
func (wasmHost) Call(op *Op, req, dst []byte) (status int32, length int) {
	return Unpack(op.call(mem.Pointer(req), uint32(len(req)), mem.Pointer(dst), uint32(len(dst))))
}

// Take implements Host.
func (wasmHost) Take(dst []byte) int32 {
	return take(mem.Pointer(dst), 0, uint32(len(dst)))
}

// Log implements Host.
func (wasmHost) Log(level int32, msg []byte) { log(level, mem.Pointer(msg), uint32(len(msg))) }

// LogLevel implements Host.
func (wasmHost) LogLevel() int32 { return logLevel() }

// Metric implements Host.
func (wasmHost) Metric(kind int32, name string, value float64) int32 {
	b := []byte(name)
	return metric(kind, mem.Pointer(b), uint32(len(b)), value)
}

// NowMS implements Host.
func (wasmHost) NowMS() int64 { return clock(0) / 1e6 }

// MonoNS implements Host.
func (wasmHost) MonoNS() int64 { return clock(1) }

// clockNS receives the time. A local variable would be allocated in each call.
var clockNS int64

// clock reads a clock of WASI, in nanoseconds: 0 is the Unix time, 1 never goes back.
func clock(id uint32) int64 {
	clockTimeGet(id, 1, unsafe.Pointer(&clockNS))
	return clockNS
}

// Random implements Host.
func (wasmHost) Random(dst []byte) bool { return randomGet(mem.Pointer(dst), uint32(len(dst))) == 0 }

// Cancelled implements Host.
func (wasmHost) Cancelled() bool { return cancelled() != 0 }

// Budget implements Host.
func (wasmHost) Budget(kind int32) int64 { return budget(kind) }
