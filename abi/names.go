// SPDX-License-Identifier: Apache-2.0

// Package abi defines the interface between the host and a guest module: names, versions, message types and their encoding. ABI.md in this
// folder is the normative text; this package implements it in Go.
//
// The package depends neither on wazero nor on Kubernetes clients, so that both halves of the host can share it.
package abi

import (
	"cmp"
	"slices"
	"strings"
)

// Version is the major version of the ABI that this package describes. It is the number in the name of the marker export and of the import
// module.
const Version = 1

// Names that are read from the binary without running it.
const (
	// MarkerPrefix, followed by the major version, is the name of an export of type () -> () that is never called: it declares the module's
	// ABI.
	MarkerPrefix = "reconciler_abi_"
	// ExportMarker is the marker of this version.
	ExportMarker = MarkerPrefix + "1"
	// ImportModule is the name of the module from which host functions are imported. Another major version has another name, so a host can
	// provide both.
	ImportModule = "reconciler_v1"
	// ManifestSection is the custom section that contains the Manifest.
	ManifestSection = "reconciler.manifest"
	// FilesSection is the custom section that contains the files for the guests.
	FilesSection = "reconciler.files"
	// ExportMemory is the name of the guest's only memory.
	ExportMemory = "memory"
	// ExportInitialize is WASI's reactor entry point, which is called once per instance if it is exported.
	ExportInitialize = "_initialize"
)

// Names of the functions that a guest exports.
const (
	ExportBuffer      = "buffer"
	ExportReconcile   = "reconcile"
	ExportErrorPolicy = "error_policy"
	ExportFinalize    = "finalize"
	ExportMap         = "map"
	ExportFilter      = "filter"
	ExportConfigure   = "configure"
	ExportValidate    = "validate"
	ExportDefault     = "default"
	ExportConvert     = "convert"
	ExportDescribe    = "describe"
	ExportPrepare     = "prepare_controllers"
)

// Words of Request.Caps and of a manifest's requires and wants, in addition to the names of operations: capabilities of the host that are
// not operations.
const (
	CapDeclare   = "declare"  // apply, prune, force and status in results
	CapFinalize  = "finalize" // the manifest's finalizer, and the export finalize
	CapMap       = "map"      // the export map, for watches with map "func"
	CapFilter    = "filter"   // the export filter
	CapConfigure = "configure"
	CapAdmission = "admission" // the manifest's webhooks, and the exports validate and default
	CapConvert   = "convert"   // the manifest's conversions, and the export convert
	CapOpaque    = "opaque"    // opaque JSON: the host accepts it, and sends it to guests whose manifest names the word
)

// ValType is a WebAssembly number type, in the encoding of the binary format.
type ValType byte

// The number types that cross the sandbox boundary.
const (
	I32 ValType = 0x7f
	I64 ValType = 0x7e
	F32 ValType = 0x7d
	F64 ValType = 0x7c
)

var valTypeNames = map[ValType]string{I32: "i32", I64: "i64", F32: "f32", F64: "f64"}

// String returns the type's name in the text format.
func (t ValType) String() string { return cmp.Or(valTypeNames[t], "unknown") }

// FuncType is the type of a function that crosses the sandbox boundary.
type FuncType struct {
	Params, Results []ValType
}

// String returns the type as it is written in ABI.md, for example
// "(i32, i32) -> (i64)".
func (f FuncType) String() string {
	return "(" + joinTypes(f.Params) + ") -> (" + joinTypes(f.Results) + ")"
}

func joinTypes(ts []ValType) string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

// Equal reports whether both types have the same parameters and results.
func (f FuncType) Equal(g FuncType) bool {
	return slices.Equal(f.Params, g.Params) && slices.Equal(f.Results, g.Results)
}

// Export is a function that a guest exports to the host.
type Export struct {
	Name     string
	Type     FuncType
	Required bool
}

var (
	typeMarker = FuncType{}
	typeBuffer = FuncType{Params: []ValType{I32}, Results: []ValType{I32}}
	typeEntry  = FuncType{Params: []ValType{I32, I32}, Results: []ValType{I64}}
	typeFilter = FuncType{Params: []ValType{I32, I32}, Results: []ValType{I32}}
	typeGet64  = FuncType{Results: []ValType{I64}}
	typeGet32  = FuncType{Results: []ValType{I32}}
)

// Exports lists the functions of a guest, required ones first.
var Exports = []Export{
	{ExportMarker, typeMarker, true},
	{ExportBuffer, typeBuffer, true},
	{ExportReconcile, typeEntry, true},
	{ExportErrorPolicy, typeEntry, false},
	{ExportFinalize, typeEntry, false},
	{ExportMap, typeEntry, false},
	{ExportFilter, typeFilter, false},
	{ExportConfigure, typeEntry, false},
	{ExportValidate, typeEntry, false},
	{ExportDefault, typeEntry, false},
	{ExportConvert, typeEntry, false},
	{ExportDescribe, typeGet64, false},
	{ExportPrepare, typeMarker, false},
	{ExportInitialize, typeMarker, false},
}
