// SPDX-License-Identifier: Apache-2.0

// This guest shows what its instances have in common. It asks for a requeue in as many
// milliseconds as the last byte of the object says: 0 is a number of math/rand/v2, 1 one
// of a source that start code has seeded with the time, 2 how often it was called, 3 how
// many calls of describe there were, 4 a panic, 5 a sum over all of a map of start code, 6 the
// next two bytes of a file that start code has opened, 7 how long all files beside it are,
// 8 how many calls of prepare there were, 9 the first letter of the controller's name.
package main

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	mathrand "math/rand"
	"math/rand/v2"
	"os"
	"time"
	"unsafe"
)

var (
	source    = mathrand.New(mathrand.NewSource(time.Now().UnixNano()))
	calls     uint32
	described uint32
	prepared  uint32
	table     = map[uint32]uint32{}
	words, _  = os.Open("/etc/words")
	message   [64 << 10]byte
	draw      = "draw in -"
	token     [4]byte
	lot       = rand.Uint32()
	answer    = []byte("\x82\xa6action\xa7requeue\xa8after_ms\xce\x00\x00\x00\x00")
)

func init() {
	drawIn('i')
	for i := range uint32(1000) {
		table[i*i] = i
	}
}

// drawIn draws the token if this is the entry to do so.
func drawIn(entry byte) {
	if draw[len(draw)-1] == entry {
		_, _ = cryptorand.Read(token[:]) // never fails
	}
}

func main() {}

//go:wasmexport reconciler_abi_1
func abi() {}

//go:wasmexport buffer
func buffer(size uint32) uint32 {
	if size > uint32(len(message)) {
		return 0
	}
	return uint32(uintptr(unsafe.Pointer(&message[0]))) + 8 - uint32(uintptr(unsafe.Pointer(&message[0])))%8
}

//go:wasmexport describe
func describe() uint64 {
	described++
	drawIn('d')
	return pack([]byte("\x80"))
}

//go:wasmexport prepare_controllers
func prepare() {
	if _, err := os.Stat("/etc/trap"); err == nil {
		panic("cannot prepare")
	}
	prepared++
	drawIn('p')
}

//go:wasmexport configure
func configure(_, _ uint32) uint64 {
	drawIn('c')
	return 0
}

//go:wasmimport wasi_snapshot_preview1 args_get
func args(places, text unsafe.Pointer) uint32

//go:wasmexport reconcile
func reconcile(ptr, size uint32) uint64 {
	at := ptr - uint32(uintptr(unsafe.Pointer(&message[0])))
	calls++
	binary.BigEndian.PutUint32(answer[len(answer)-4:], number(message[at+size-1])&0x3ff_ffff)
	return pack(answer)
}

func number(mode byte) uint32 {
	switch mode {
	case 0:
		return rand.Uint32()
	case 1:
		return source.Uint32()
	case 2:
		return calls
	case 3:
		return described
	case 4:
		panic("as it was told")
	case 6:
		var b [2]byte
		_, _ = words.Read(b[:])
		return uint32(binary.BigEndian.Uint16(b[:]))
	case 7:
		size := uint32(0)
		list, _ := os.ReadDir("/etc")
		for _, f := range list {
			text, _ := os.ReadFile("/etc/" + f.Name())
			size += uint32(len(text))
		}
		return size
	case 8:
		return prepared
	case 9:
		var place uint32
		var text [64]byte
		args(unsafe.Pointer(&place), unsafe.Pointer(&text))
		return uint32(text[0])
	case 10:
		drawIn('r')
		return binary.BigEndian.Uint32(token[:])
	case 11:
		return lot
	}
	sum := uint32(0)
	for k, v := range table {
		if table[k] == v {
			sum += k
		}
	}
	return sum
}

func pack(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(&b[0])))<<32 | uint64(len(b))
}
