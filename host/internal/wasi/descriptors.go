// SPDX-License-Identifier: Apache-2.0

package wasi

import "slices"

// maxOpen is how many descriptors a guest may have.
const maxOpen = 64

// rootFD is the descriptor of the root, which each guest has at its start.
const rootFD = 3

// Descriptors are what a guest has open. The zero value has stdin, stdout, stderr and
// the root of its files.
type Descriptors struct {
	list []descriptor // by number; nil before the first use
	told bool         // it was said that a file of the cluster is missing
}

// descriptor is one of them. The zero value is closed.
type descriptor struct {
	is     descriptorKind
	node   *node // of all but streams
	offset int64 // of a file
}

type descriptorKind byte

const (
	isClosed = descriptorKind(iota)
	isStream
	isRoot // that the guest had at its start
	isNode // that the guest has opened
)

// Clone returns a copy that changes by itself.
func (d *Descriptors) Clone() Descriptors {
	return Descriptors{list: slices.Clone(d.list), told: d.told}
}

// find returns an open descriptor, nil if it is not open.
func find(g Guest, fd int32) *descriptor {
	d := g.Descriptors()
	if d.list == nil {
		d.list = []descriptor{{is: isStream}, {is: isStream}, {is: isStream}, {is: isRoot, node: &g.Files().root}}
	}
	if fd < 0 || int(fd) >= len(d.list) || d.list[fd].is == isClosed {
		return nil
	}
	return &d.list[fd]
}

// insert gives a descriptor the lowest number that is free.
func (d *Descriptors) insert(n descriptor) (int, Errno) {
	for fd := range d.list {
		if d.list[fd].is == isClosed {
			d.list[fd] = n
			return fd, OK
		}
	}
	if len(d.list) == maxOpen {
		return 0, tooManyOpen
	}
	d.list = append(d.list, n)
	return len(d.list) - 1, OK
}

func fdClose(g Guest, p []uint64) Errno {
	d := find(g, i32(p[0]))
	if d == nil {
		return badFile
	}
	*d = descriptor{}
	return OK
}

// fdRenumber: what the guest had at its start keeps its number.
func fdRenumber(g Guest, p []uint64) Errno {
	d, to := find(g, i32(p[0])), i32(p[1])
	if d == nil || to < 0 || to >= maxOpen {
		return badFile
	}
	if there := find(g, to); d.is != isNode || there != nil && there.is != isNode {
		return notSup
	}
	moved := *d
	*d = descriptor{}
	all := g.Descriptors()
	for int(to) >= len(all.list) {
		all.list = append(all.list, descriptor{})
	}
	all.list[to] = moved
	return OK
}

// root returns the descriptor of the root that the guest had at its start.
func root(g Guest, fd int32) Errno {
	if d := find(g, fd); d == nil || d.is != isRoot {
		return badFile
	}
	return OK
}

const rootName = "/"

func fdPrestatGet(g Guest, p []uint64) Errno {
	if errno := root(g, i32(p[0])); errno != OK {
		return errno
	}
	return written(g.Memory().WriteUint64Le(u32(p[1]), uint64(len(rootName))<<32))
}

func fdPrestatDirName(g Guest, p []uint64) Errno {
	if errno := root(g, i32(p[0])); errno != OK {
		return errno
	}
	if u32(p[2]) > uint32(len(rootName)) {
		return nameTooLong
	}
	return written(g.Memory().WriteString(u32(p[1]), rootName[:u32(p[2])]))
}
