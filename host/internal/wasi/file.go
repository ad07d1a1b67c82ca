package wasi

import "math"

// What stdin, stdout and stderr are: devices without a position.
const (
	blockDevice = 1
	// fileRights are all rights of preview 1 on an open file.
	fileRights = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<21 | 1<<22 | 1<<23 | 1<<27
)

// Flags of fd_fdstat_set_flags.
const (
	flagNonblock = 1 << 2
	flagsOfSync  = 1<<1 | 1<<3 | 1<<4
)

// fdOpen answers for what does nothing to a stream.
func fdOpen(g Guest, p []uint64) Errno {
	if !g.Descriptors().open(i32(p[0])) {
		return badFile
	}
	return OK
}

// fdOnlyFiles answers for what a stream does not have.
func fdOnlyFiles(g Guest, p []uint64) Errno {
	if !g.Descriptors().open(i32(p[0])) {
		return badFile
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
	switch errno, end := fdOpen(g, p), p[1]+p[2]; {
	case errno != OK:
		return errno
	case end > math.MaxInt64:
		return invalid
	case end == 0: // as long as it is
		return OK
	}
	return noSystem
}

func fdClose(g Guest, p []uint64) Errno {
	d, fd := g.Descriptors(), i32(p[0])
	if !d.open(fd) {
		return badFile
	}
	d.closed[fd] = true
	return OK
}

// fdRenumber: a stream keeps its number.
func fdRenumber(g Guest, p []uint64) Errno {
	if !g.Descriptors().open(i32(p[0])) || i32(p[1]) < 0 {
		return badFile
	}
	return notSup
}

// statOf returns the cleared place that the stat of an open stream goes to.
func statOf(g Guest, p []uint64, size uint32) ([]byte, Errno) {
	b, ok := g.Memory().Read(u32(p[1]), size)
	if !ok {
		return nil, fault
	}
	errno := fdOpen(g, p)
	if errno == OK {
		clear(b)
	}
	return b, errno
}

func fdStatGet(g Guest, p []uint64) Errno {
	b, errno := statOf(g, p, 24)
	if errno != OK {
		return errno
	}
	le.PutUint16(b, blockDevice)
	le.PutUint64(b[8:], fileRights)
	return OK
}

func fdStatSetFlags(g Guest, p []uint64) Errno {
	flags := u32(p[1])
	if flags&flagsOfSync != 0 {
		return invalid
	}
	if errno := fdOpen(g, p); errno != OK || flags&flagNonblock == 0 {
		return errno
	}
	return noSystem
}

func fdFileStatGet(g Guest, p []uint64) Errno {
	b, errno := statOf(g, p, 64)
	if errno != OK {
		return errno
	}
	le.PutUint64(b[16:], blockDevice)
	le.PutUint64(b[24:], 1) // links
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

func fdReaddir(g Guest, p []uint64) Errno {
	const header = 24
	if u32(p[2]) < header {
		return invalid
	}
	return badFile
}

// nowhere is the descriptor of a path that is below no folder of the guest, in Go's
// package syscall.
const nowhere = -1

// path answers for a path below a descriptor, which no descriptor has. The
// descriptor is the first parameter, the path begins at the parameter given. What is
// below no folder does not exist: libraries do without a file then, such as that of
// client-go's login.
func path(at int) func(Guest, []uint64) Errno {
	return func(g Guest, p []uint64) Errno {
		switch _, ok := g.Memory().Read(u32(p[at]), u32(p[at+1])); {
		case !ok:
			return fault
		case i32(p[0]) == nowhere:
			return noEntry
		case !g.Descriptors().open(i32(p[0])):
			return badFile
		}
		return notDir
	}
}

func pathSetTimes(g Guest, p []uint64) Errno {
	if badTimes(u32(p[6])) {
		return invalid
	}
	return path(2)(g, p)
}

func pathReadlink(g Guest, p []uint64) Errno {
	if u32(p[2]) == 0 || u32(p[4]) == 0 {
		return invalid
	}
	return path(1)(g, p)
}

func pathSymlink(g Guest, p []uint64) Errno {
	if !g.Descriptors().open(i32(p[2])) {
		return badFile
	}
	return notDir
}

func sockSend(_ Guest, p []uint64) Errno {
	if u32(p[3]) != 0 {
		return notSup
	}
	return badFile
}
