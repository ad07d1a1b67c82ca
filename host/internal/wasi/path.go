// SPDX-License-Identifier: Apache-2.0

package wasi

import (
	"io/fs"
	"path"
	"strings"
)

// Flags of path_open.
const (
	openCreate    = 1 << 0
	openDirectory = 1 << 1
	openExclusive = 1 << 2
	openTruncate  = 1 << 3

	rightWrite = 1 << 6
	flagAppend = 1 << 0
)

// cluster is the folder where Kubernetes puts what pods read.
const cluster = "var/run/secrets/"

// lookup finds the path at a place in memory, below the folder of a descriptor. A path
// that leads out of it is not permitted.
func lookup(g Guest, fd int32, at, size uint32) (n *node, name string, errno Errno) {
	b, ok := g.Memory().Read(at, size)
	switch {
	case !ok:
		return nil, "", fault
	case size > maxPath:
		return nil, "", nameTooLong
	}
	g.Charge(len(b))
	name = path.Clean(string(b))
	if !fs.ValidPath(name) {
		return nil, "", notPermitted
	}
	switch d := find(g, fd); {
	case d == nil:
		return nil, "", badFile
	case d.node == nil || !d.node.folder():
		return nil, "", notDir
	default:
		n, errno = d.node.walk(name)
	}
	if errno == OK && !n.folder() && size > 0 && b[size-1] == '/' {
		return nil, "", notDir
	}
	return n, name, errno
}

// reached reports whether a descriptor and a path were as they should be, whether or not
// something is there.
func reached(errno Errno) bool { return errno == OK || errno == noEntry }

// changes answers for what would change the file or folder at a path. The descriptor is
// the first parameter, the path begins at the parameter given.
func changes(at int) func(Guest, []uint64) Errno {
	return func(g Guest, p []uint64) Errno { return change(g, i32(p[0]), u32(p[at]), u32(p[at+1])) }
}

func change(g Guest, fd int32, at, size uint32) Errno {
	if _, _, errno := lookup(g, fd, at, size); errno != OK {
		return errno
	}
	return readOnly
}

// makes answers for what would make something at a path.
func makes(g Guest, fd int32, at, size uint32) Errno {
	switch _, _, errno := lookup(g, fd, at, size); {
	case errno == OK:
		return exists
	case !reached(errno):
		return errno
	}
	return readOnly
}

func pathCreateDirectory(g Guest, p []uint64) Errno {
	return makes(g, i32(p[0]), u32(p[1]), u32(p[2]))
}

func pathSetTimes(g Guest, p []uint64) Errno {
	if badTimes(u32(p[6])) {
		return invalid
	}
	return change(g, i32(p[0]), u32(p[2]), u32(p[3]))
}

// moves answers for what takes two paths, the second at the parameter given.
func moves(from, to int) func(Guest, []uint64) Errno {
	return func(g Guest, p []uint64) Errno {
		_, _, first := lookup(g, i32(p[0]), u32(p[from]), u32(p[from+1]))
		if !reached(first) {
			return first
		}
		if _, _, errno := lookup(g, i32(p[to]), u32(p[to+1]), u32(p[to+2])); !reached(errno) {
			return errno
		}
		if first != OK {
			return first
		}
		return readOnly
	}
}

func pathSymlink(g Guest, p []uint64) Errno {
	d, old, size := find(g, i32(p[2])), u32(p[1]), u32(p[4])
	switch {
	case d == nil:
		return badFile
	case d.node == nil || !d.node.folder():
		return notDir
	case old == 0 || size == 0:
		return invalid
	}
	if _, ok := g.Memory().Read(u32(p[0]), old); !ok {
		return fault
	}
	return makes(g, i32(p[2]), u32(p[3]), size)
}

// pathReadlink: there are no links.
func pathReadlink(g Guest, p []uint64) Errno {
	if u32(p[2]) == 0 || u32(p[4]) == 0 {
		return invalid
	}
	if _, _, errno := lookup(g, i32(p[0]), u32(p[1]), u32(p[2])); errno != OK {
		return errno
	}
	return invalid
}

func pathFileStatGet(g Guest, p []uint64) Errno {
	n, _, errno := lookup(g, i32(p[0]), u32(p[2]), u32(p[3]))
	if errno != OK {
		return errno
	}
	b, ok := g.Memory().Read(u32(p[4]), 64)
	if ok {
		n.stat(b)
	}
	return written(ok)
}

func pathOpen(g Guest, p []uint64) Errno {
	n, name, errno := lookup(g, i32(p[0]), u32(p[2]), u32(p[3]))
	flags := uint16(p[4])                                                                     //nolint:gosec // the bits that there are
	writes := flags&openTruncate != 0 || p[5]&rightWrite != 0 || uint16(p[7])&flagAppend != 0 //nolint:gosec // as above
	switch {
	case reached(errno) && (u32(p[3]) == 0 || flags&(openDirectory|openCreate) == openDirectory|openCreate):
		return invalid
	case errno == noEntry && flags&openCreate != 0:
		return readOnly
	case errno == noEntry:
		missing(g, name)
		return errno
	case errno != OK:
		return errno
	case flags&(openCreate|openExclusive) == openCreate|openExclusive:
		return exists
	case writes && n.folder():
		return isFolder
	case writes:
		return readOnly
	case flags&openDirectory != 0 && !n.folder():
		return notDir
	}
	place, ok := g.Memory().Read(u32(p[8]), 4)
	if !ok {
		return fault
	}
	fd, errno := g.Descriptors().insert(descriptor{is: isNode, node: n})
	if errno == OK {
		le.PutUint32(place, uint32(fd)) //nolint:gosec // less than maxOpen
	}
	return errno
}

// missing says once that a file is missing that pods have, and what to do about it, as
// if the guest had: many programs do not say what they looked for.
func missing(g Guest, name string) {
	if d := g.Descriptors(); !d.told && strings.HasPrefix(name, cluster) {
		d.told = true
		text := []byte("opens /" + name + ", which the module does not have; give it with --namespace or --files of wasmctl build\n")
		g.Charge(len(text))
		g.Write(2, text)
	}
}
