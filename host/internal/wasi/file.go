// SPDX-License-Identifier: Apache-2.0

package wasi

import "math"

// Types of what a descriptor stands for; streams are devices without a position.
const (
	blockDevice = 1
	directory   = 3
	regularFile = 4
)

// Rights of preview 1 on an open file, and on a folder: those that wazero names.
const (
	fileRights   = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<21 | 1<<22 | 1<<23 | 1<<27
	folderRights = 1<<0 | 1<<3 | 1<<4 | (1<<27-1)&^(1<<9-1)&^(1<<22)
)

// Flags of fd_fdstat_set_flags.
const (
	flagNonblock = 1 << 2
	flagsOfSync  = 1<<1 | 1<<3 | 1<<4
)

// fdOpen answers for what does nothing to a descriptor.
func fdOpen(g Guest, p []uint64) Errno {
	if find(g, i32(p[0])) == nil {
		return badFile
	}
	return OK
}

// fdUnable answers for what no descriptor can.
func fdUnable(g Guest, p []uint64) Errno {
	if errno := fdOpen(g, p); errno != OK {
		return errno
	}
	return noSystem
}

func fdAdvise(g Guest, p []uint64) Errno {
	const advices = 6
	if errno := fdOpen(g, p); errno != OK {
		return errno
	}
	if byte(p[3]) >= advices { //nolint:gosec // the lowest byte
		return invalid
	}
	return OK
}

func fdAllocate(g Guest, p []uint64) Errno {
	d, end := find(g, i32(p[0])), p[1]+p[2]
	switch {
	case d == nil:
		return badFile
	case end > math.MaxInt64:
		return invalid
	case end <= uint64(d.size()):
		return OK
	}
	return noSystem
}

// size is that of a file, and 0 for all else.
func (d *descriptor) size() int64 {
	if d.node == nil {
		return 0
	}
	return int64(len(d.node.content))
}

// statOf returns an open descriptor, and the place that its stat goes to.
func statOf(g Guest, p []uint64, size uint32) (*descriptor, []byte, Errno) {
	b, ok := g.Memory().Read(u32(p[1]), size)
	if !ok {
		return nil, nil, fault
	}
	d := find(g, i32(p[0]))
	if d == nil {
		return nil, nil, badFile
	}
	clear(b)
	return d, b, OK
}

func fdStatGet(g Guest, p []uint64) Errno {
	d, b, errno := statOf(g, p, 24)
	if errno != OK {
		return errno
	}
	le.PutUint64(b[8:], fileRights)
	switch {
	case d.node == nil:
		b[0] = blockDevice
	case d.node.folder():
		le.PutUint64(b[8:], folderRights)
		le.PutUint64(b[16:], fileRights|folderRights)
		fallthrough
	default:
		b[0] = d.node.kind()
	}
	return OK
}

func fdStatSetFlags(g Guest, p []uint64) Errno {
	flags := u32(p[1])
	if flags&flagsOfSync != 0 {
		return invalid
	}
	d := find(g, i32(p[0]))
	if d == nil {
		return badFile
	}
	if flags&flagNonblock != 0 || d.node != nil && !d.node.folder() {
		return noSystem
	}
	return OK
}

func fdFileStatGet(g Guest, p []uint64) Errno {
	d, b, errno := statOf(g, p, 64)
	switch {
	case errno != OK:
		return errno
	case d.node != nil:
		d.node.stat(b)
	default:
		b[16] = blockDevice
		le.PutUint64(b[24:], 1) // links
	}
	return OK
}

// badTimes reports whether flags ask for two values of one time.
func badTimes(flags uint32) bool { return flags&3 == 3 || flags&12 == 12 }

func fdFileStatSetTimes(g Guest, p []uint64) Errno {
	if errno := fdOpen(g, p); errno != OK {
		return errno
	}
	if badTimes(u32(p[3])) {
		return invalid
	}
	return noSystem
}

func fdSeek(g Guest, p []uint64) Errno { return seek(g, p, int64(p[1]), u32(p[2]), u32(p[3])) } //nolint:gosec // the bits of an i64
func fdTell(g Guest, p []uint64) Errno { return seek(g, p, 0, fromHere, u32(p[1])) }

// fromHere is the second of the places that an offset may be relative to: the start, the
// position and the end.
const fromHere = 1

// seek moves the position within a file. There is none behind the end, as nobody writes.
func seek(g Guest, p []uint64, by int64, whence, result uint32) Errno {
	d := find(g, i32(p[0]))
	switch {
	case d == nil:
		return badFile
	case d.node == nil:
		return noSystem
	case d.node.folder():
		return isFolder
	case whence > 2:
		return invalid
	}
	from := [...]int64{0, d.offset, d.size()}[whence]
	if by < -from || by > d.size()-from {
		return invalid
	}
	d.offset = from + by
	return written(g.Memory().WriteUint64Le(result, uint64(d.offset))) //nolint:gosec // not negative
}

func sockSend(_ Guest, p []uint64) Errno {
	if u32(p[3]) != 0 {
		return notSup
	}
	return badFile
}
