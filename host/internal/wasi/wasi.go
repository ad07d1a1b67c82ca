// SPDX-License-Identifier: Apache-2.0

// Package wasi serves WASI preview 1 to a guest that has clocks, randomness, one
// argument, two streams to the log and files to read, and no environment or sockets.
//
// wazero's own WASI cannot be interrupted and works for as long as the guest's
// arguments say. Here each function has a bound, or charges the caller for what
// it is about to do, piece by piece; where the call is over, Charge does not
// return. What a function answers is what wazero's answers with the same files; a
// test compares them, and names the exceptions.
package wasi

import (
	"encoding/binary"
	"strings"
	"time"
)

// Module is the name that guests import the functions from.
const Module = "wasi_snapshot_preview1"

// Bounds of one call.
const (
	maxVectors       = 1024    // of fd_read and fd_write, as IOV_MAX of Linux
	maxSubscriptions = 1024    // of poll_oneoff
	maxWrite         = 1 << 20 // bytes of fd_write; it returns how many it took
	piece            = 16 << 10
)

// Memory is the guest's. Each method reports false where that does not lie within it.
type Memory interface {
	Read(at, size uint32) ([]byte, bool) // a view
	WriteString(at uint32, s string) bool
	WriteUint32Le(at, v uint32) bool
	WriteUint64Le(at uint32, v uint64) bool
}

// Guest is what the functions need of the instance that calls them.
type Guest interface {
	Memory() Memory
	// Charge takes the cost of work on so many bytes, which is about to be done. It
	// does not return where the guest's call is over.
	Charge(bytes int)
	// Program is what os.Args[0] is.
	Program() string
	// Descriptors are the guest's own, which nobody else changes.
	Descriptors() *Descriptors
	// Files are those of its module. They are always the same.
	Files() *Files
	Now() time.Time
	Mono() int64
	Random(b []byte) error
	// Sleep waits until the time has passed or the call is over.
	Sleep(d time.Duration)
	// Write takes what the guest writes to stdout (1) or stderr (2). b is the
	// guest's memory.
	Write(fd int32, b []byte)
	// Exit ends the guest, and does not return.
	Exit(code uint32)
}

// Errno is an error number of WASI.
type Errno uint32

// Error numbers.
const (
	OK           Errno = 0
	badFile      Errno = 8
	exists       Errno = 20
	fault        Errno = 21
	invalid      Errno = 28
	inOut        Errno = 29
	isFolder     Errno = 31
	tooManyOpen  Errno = 33
	nameTooLong  Errno = 37
	noEntry      Errno = 44
	noSystem     Errno = 52
	notDir       Errno = 54
	notSup       Errno = 58
	notPermitted Errno = 63
	readOnly     Errno = 69
)

// Types of parameters and results.
const (
	typeI32 = 0x7f
	typeI64 = 0x7e
)

// Func is one function.
type Func struct {
	Params, Results []byte // types, in the encoding of the binary format
	// Call reads its parameters from the stack and leaves its result there.
	Call func(g Guest, stack []uint64)
}

// Funcs returns all functions of preview 1, by name.
func Funcs() map[string]Func {
	out := make(map[string]Func, len(table))
	for _, row := range table {
		name, letters, _ := strings.Cut(row.signature, " ")
		params := make([]byte, len(letters))
		for i, c := range letters {
			if params[i] = typeI32; c == 'I' {
				params[i] = typeI64
			}
		}
		f := Func{Params: params, Results: []byte{typeI32}}
		if row.f == nil { // proc_exit alone has no result
			f.Results, f.Call = nil, func(g Guest, stack []uint64) { g.Exit(u32(stack[0])) }
		} else {
			f.Call = func(g Guest, stack []uint64) { stack[0] = uint64(row.f(g, stack)) }
		}
		out[name] = f
	}
	return out
}

// table has the name and the parameters of each function: i is an i32, I an i64.
var table = []struct {
	signature string
	f         func(g Guest, p []uint64) Errno
}{
	{"args_get ii", argsGet},
	{"args_sizes_get ii", argsSizesGet},
	{"environ_get ii", environGet},
	{"environ_sizes_get ii", environSizesGet},
	{"clock_res_get ii", clockResGet},
	{"clock_time_get iIi", clockTimeGet},
	{"fd_advise iIIi", fdAdvise},
	{"fd_allocate iII", fdAllocate},
	{"fd_close i", fdClose},
	{"fd_datasync i", fdOpen},
	{"fd_fdstat_get ii", fdStatGet},
	{"fd_fdstat_set_flags ii", fdStatSetFlags},
	{"fd_fdstat_set_rights iII", unsupported},
	{"fd_filestat_get ii", fdFileStatGet},
	{"fd_filestat_set_size iI", fdUnable},
	{"fd_filestat_set_times iIIi", fdFileStatSetTimes},
	{"fd_pread iiiIi", fdPread},
	{"fd_prestat_get ii", fdPrestatGet},
	{"fd_prestat_dir_name iii", fdPrestatDirName},
	{"fd_pwrite iiiIi", fdPwrite},
	{"fd_read iiii", fdRead},
	{"fd_readdir iiiIi", fdReaddir},
	{"fd_renumber ii", fdRenumber},
	{"fd_seek iIii", fdSeek},
	{"fd_sync i", fdOpen},
	{"fd_tell ii", fdTell},
	{"fd_write iiii", fdWrite},
	{"path_create_directory iii", pathCreateDirectory},
	{"path_filestat_get iiiii", pathFileStatGet},
	{"path_filestat_set_times iiiiIIi", pathSetTimes},
	{"path_link iiiiiii", moves(2, 4)},
	{"path_open iiiiiIIii", pathOpen},
	{"path_readlink iiiiii", pathReadlink},
	{"path_remove_directory iii", changes(1)},
	{"path_rename iiiiii", moves(1, 3)},
	{"path_symlink iiiii", pathSymlink},
	{"path_unlink_file iii", changes(1)},
	{"poll_oneoff iiii", pollOneoff},
	{"proc_exit i", nil},
	{"proc_raise i", unsupported},
	{"sched_yield ", func(Guest, []uint64) Errno { return OK }},
	{"random_get ii", randomGet},
	{"sock_accept iii", noFile},
	{"sock_recv iiiiii", noFile},
	{"sock_send iiiii", sockSend},
	{"sock_shutdown ii", noFile},
}

func u32(v uint64) uint32 { return uint32(v) }        //nolint:gosec // the upper half is not ours
func i32(v uint64) int32  { return int32(uint32(v)) } //nolint:gosec // the bits of an i32

var le = binary.LittleEndian

func written(ok bool) Errno {
	if !ok {
		return fault
	}
	return OK
}

func unsupported(Guest, []uint64) Errno { return noSystem }

// noFile answers for what only sockets have.
func noFile(Guest, []uint64) Errno { return badFile }

// program is the one argument, as it lies in memory.
func program(g Guest) string {
	name, _, _ := strings.Cut(g.Program(), "\x00")
	return name + "\x00"
}

func argsSizesGet(g Guest, p []uint64) Errno {
	m := g.Memory()
	return written(m.WriteUint32Le(u32(p[0]), 1) && m.WriteUint32Le(u32(p[1]), uint32(len(program(g))))) //nolint:gosec // a name
}

func argsGet(g Guest, p []uint64) Errno {
	m, text := g.Memory(), program(g)
	_, pointer := m.Read(u32(p[0]), 4)
	place, ok := m.Read(u32(p[1]), uint32(len(text))) //nolint:gosec // a name
	if !pointer || !ok {
		return fault
	}
	m.WriteUint32Le(u32(p[0]), u32(p[1]))
	copy(place, text)
	return OK
}

func environSizesGet(g Guest, p []uint64) Errno {
	m := g.Memory()
	return written(m.WriteUint32Le(u32(p[0]), 0) && m.WriteUint32Le(u32(p[1]), 0))
}

func environGet(g Guest, p []uint64) Errno {
	m := g.Memory()
	_, pointers := m.Read(u32(p[0]), 0)
	_, texts := m.Read(u32(p[1]), 0)
	return written(pointers && texts)
}

// Clocks.
const (
	realtime = iota
	monotonic
)

func clockResGet(g Guest, p []uint64) Errno {
	if u32(p[0]) > monotonic {
		return invalid
	}
	return written(g.Memory().WriteUint64Le(u32(p[1]), 1))
}

func clockTimeGet(g Guest, p []uint64) Errno {
	var ns int64
	switch u32(p[0]) {
	case realtime:
		ns = g.Now().UnixNano()
	case monotonic:
		ns = g.Mono()
	default:
		return invalid
	}
	return written(g.Memory().WriteUint64Le(u32(p[2]), uint64(ns))) //nolint:gosec // the bits of an i64
}

func randomGet(g Guest, p []uint64) Errno {
	b, ok := g.Memory().Read(u32(p[0]), u32(p[1]))
	if !ok {
		return fault
	}
	for len(b) > 0 {
		n := min(len(b), piece)
		g.Charge(n)
		if g.Random(b[:n]) != nil {
			return inOut
		}
		b = b[n:]
	}
	return OK
}
