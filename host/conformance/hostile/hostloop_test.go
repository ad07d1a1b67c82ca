// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// Types of values.
const (
	wasmI32 = 0x7f
	wasmI64 = 0x7e
	wasmF64 = 0x7c
)

// hostLoop is a guest whose reconcile calls one import again and again, always
// with the same arguments, for ever. What the import costs is all that it does.
type hostLoop struct {
	module, name    string
	params, results []byte
	args            []int64
	// data makes what lies behind the first page of its memory, at dataAt; the
	// request of the host lies before it. pages is how large memory is besides.
	data  func() []byte
	pages int
	// manifest is its manifest, for abi.AppendValue.
	manifest map[string]any
}

const (
	// dataAt is the start of a hostLoop's data.
	dataAt = 1 << 16
	// dataLen stands for the length of the data among its arguments.
	dataLen = math.MinInt64
)

// hostCall is a hostLoop over an operation of the API.
func hostCall(op abi.Op, request func() []byte) *hostLoop {
	return &hostLoop{
		module: abi.ImportModule, name: string(op), params: slices.Repeat([]byte{wasmI32}, 4), results: []byte{wasmI64},
		args: []int64{dataAt, dataLen, 0, 512}, data: request,
	}
}

// says returns the loop with a manifest.
func (l *hostLoop) says(manifest map[string]any) *hostLoop {
	l.manifest = manifest
	return l
}

// bytes is the module.
func (l *hostLoop) bytes() []byte {
	m := plain()
	m.importing(l.module, l.name, l.params, l.results)
	var data []byte
	if l.data != nil {
		data = l.data()
	}
	pages := 2 + len(data)>>16 + l.pages
	m.memories = [][]byte{append([]byte{0}, binary.AppendUvarint(nil, uint64(pages))...)}
	code := []byte{0x03, 0x40} // loop
	for i, arg := range l.args {
		if arg == dataLen {
			arg = int64(len(data))
		}
		switch l.params[i] {
		case wasmI32:
			code = appendSigned(append(code, 0x41), arg)
		case wasmI64:
			code = appendSigned(append(code, 0x42), arg)
		default:
			code = append(code, 0x44, 0, 0, 0, 0, 0, 0, 0, 0)
		}
	}
	code = append(code, 0x10, 0)
	code = append(code, slices.Repeat([]byte{0x1a}, len(l.results))...) // drop
	m.bodies[2] = body(append(code, 0x0c, 0, 0x0b, 0x00)...)            // again
	if len(data) > 0 {
		at := append(appendSigned([]byte{0, 0x41}, dataAt), 0x0b)
		m.data = [][]byte{append(at, sized(data)...)}
	}
	m.behind = manifestOf(l.manifest)
	return m.bytes()
}

// manifestOf returns the section of a manifest. It is empty for nil.
func manifestOf(manifest map[string]any) []byte {
	if manifest == nil {
		return nil
	}
	return section(customSection, append(text(abi.ManifestSection), packed(manifest)...))
}

// packed is a value as msgpack.
func packed(v any) []byte {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic(err) // a mistake in a table of tests
	}
	return b
}

// appendSigned writes a number as code has it.
func appendSigned(out []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}
