// SPDX-License-Identifier: Apache-2.0

// Package wasm holds small guests for tests, as bytes. Each is a .wat file of
// this folder, converted by build.sh; what a guest does stands at its head.
package wasm

import _ "embed"

// Empty awaits a change, and is the least that a module can be.
//
//go:embed empty.wasm
var Empty []byte

// Modes does what the last byte of the object says: traps, spins, recurses,
// runs out of memory, returns good and bad results.
//
//go:embed modes.wasm
var Modes []byte

// Buffers has a buffer that misbehaves by the size of the request.
//
//go:embed buffers.wasm
var Buffers []byte

// Spy forwards its requests to api_get and its failures to api_list.
//
//go:embed spy.wasm
var Spy []byte

// Echo returns what stands at the end of the object, in each of its entries.
//
//go:embed echo.wasm
var Echo []byte

// Finalizes finalizes objects, or fails to.
//
//go:embed finalizes.wasm
var Finalizes []byte

// Configure does in configure what the last letter of its settings says.
//
//go:embed configure.wasm
var Configure []byte

// Calls runs a program of host calls that stands at the end of the object.
//
//go:embed calls.wasm
var Calls []byte

// Reports reports a counter and a gauge in each run.
//
//go:embed reports.wasm
var Reports []byte

// WASI prints, exits, sleeps and reads the clocks through WASI.
//
//go:embed wasi.wasm
var WASI []byte

// Floods asks the host for work without end.
//
//go:embed floods.wasm
var Floods []byte

// Holds takes all memory that it can get, and sleeps with it.
//
//go:embed holds.wasm
var Holds []byte

// Init calls host functions from its start code.
//
//go:embed init.wasm
var Init []byte

// Describe says what it is through describe.
//
//go:embed describe.wasm
var Describe []byte

// DescribeBad has a describe that returns no manifest.
//
//go:embed describe_bad.wasm
var DescribeBad []byte

// BadExports lacks required exports and has others of the wrong type.
//
//go:embed bad_exports.wasm
var BadExports []byte

// BadImports imports what no host has.
//
//go:embed bad_imports.wasm
var BadImports []byte

// ABI2 is built for major version 2 of the ABI.
//
//go:embed abi2.wasm
var ABI2 []byte

// ABI12 declares major versions 1 and 2 of the ABI.
//
//go:embed abi12.wasm
var ABI12 []byte

// StartTrap traps in its start function.
//
//go:embed start_trap.wasm
var StartTrap []byte

// InitExit exits with code 0 in its start code.
//
//go:embed init_exit.wasm
var InitExit []byte

// InitSpin never ends its start code.
//
//go:embed init_spin.wasm
var InitSpin []byte

// Tables grows a table until it is refused.
//
//go:embed tables.wasm
var Tables []byte

// Work works as long as its request says, and calls api_get in between.
//
//go:embed work.wasm
var Work []byte

// Worse is as bad as a byte of its data says.
//
//go:embed worse.wasm
var Worse []byte

// Leak takes one more page of memory in each run.
//
//go:embed leak.wasm
var Leak []byte

// Picky asks for an object, and traps where the answer is a conflict.
//
//go:embed picky.wasm
var Picky []byte

// Trusting asks for an object, and traps where the answer is less than an object
// has.
//
//go:embed trusting.wasm
var Trusting []byte

// Command is built as a WASI command, not as a reactor.
//
//go:embed command.wasm
var Command []byte

// Draws draws random bytes in one of its entries.
//
//go:embed draws.wasm
var Draws []byte

// Judges judges each request of a webhook in the same way.
//
//go:embed judges.wasm
var Judges []byte
