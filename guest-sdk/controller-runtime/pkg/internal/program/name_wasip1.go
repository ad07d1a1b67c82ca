// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"unsafe"
)

//go:wasmimport wasi_snapshot_preview1 args_sizes_get
func argsSizes(count, size unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 args_get
func args(places, text unsafe.Pointer) uint32

// name returns the name of the controller that the module currently runs as.
// os.Args has the name that the start code received. That may be another
// controller, if the host shares the result of the start code.
func name() string {
	var count, size uint32
	if argsSizes(unsafe.Pointer(&count), unsafe.Pointer(&size)) != 0 || count == 0 || size == 0 {
		return ""
	}
	places, text := make([]uint32, count), make([]byte, size)
	if args(unsafe.Pointer(&places[0]), unsafe.Pointer(&text[0])) != 0 {
		return ""
	}
	first, _, _ := bytes.Cut(text, []byte{0})
	return string(first)
}
