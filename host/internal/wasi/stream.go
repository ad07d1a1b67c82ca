// SPDX-License-Identifier: Apache-2.0

package wasi

// vectors reads a list of blocks, each a pointer and a length.
func vectors(g Guest, at, count uint32) ([]byte, Errno) {
	if count > maxVectors {
		return nil, invalid
	}
	b, ok := g.Memory().Read(at, 8*count)
	if !ok {
		return nil, fault
	}
	g.Charge(len(b))
	return b, OK
}

// block returns the block of the first vector of a list.
func block(g Guest, list []byte) ([]byte, bool) {
	return g.Memory().Read(le.Uint32(list), le.Uint32(list[4:]))
}

func fdRead(g Guest, p []uint64) Errno {
	d := find(g, i32(p[0]))
	if d == nil {
		return badFile
	}
	return d.read(g, p, &d.offset, i32(p[0]) == 0, u32(p[3]))
}

// fdPread: a stream has no position.
func fdPread(g Guest, p []uint64) Errno {
	d, offset := find(g, i32(p[0])), int64(p[3]) //nolint:gosec // the bits of an i64
	if d == nil {
		return badFile
	}
	return d.read(g, p, &offset, false, u32(p[4]))
}

// read fills the blocks of a list from a position, which it moves. Of streams, the
// guest can read one, which is at its end.
func (d *descriptor) read(g Guest, p []uint64, offset *int64, stream bool, result uint32) Errno {
	list, errno := vectors(g, u32(p[1]), u32(p[2]))
	if errno != OK {
		return errno
	}
	total := 0
	for ; len(list) > 0; list = list[8:] {
		if le.Uint32(list[4:]) == 0 {
			continue
		}
		b, ok := block(g, list)
		switch {
		case !ok:
			return fault
		case d.node == nil && !stream:
			return badFile
		case d.node == nil:
		case d.node.folder():
			return isFolder
		case *offset < 0:
			return invalid
		default:
			rest := d.node.content[min(*offset, d.size()):]
			n := min(len(b), len(rest))
			g.Charge(n)
			copy(b, rest)
			*offset += int64(n)
			if total += n; n == len(b) {
				continue
			}
		}
		break
	}
	return written(g.Memory().WriteUint32Le(result, uint32(total))) //nolint:gosec // at most the size of a file
}

// fdWrite writes all blocks, or the first maxWrite bytes of them: like any write
// it may take less than it is given.
func fdWrite(g Guest, p []uint64) Errno {
	fd := i32(p[0])
	d := find(g, fd)
	if d == nil {
		return badFile
	}
	list, errno := vectors(g, u32(p[1]), u32(p[2]))
	if errno != OK {
		return errno
	}
	total := 0
	for ; len(list) > 0 && total < maxWrite; list = list[8:] {
		b, ok := block(g, list)
		switch {
		case !ok:
			return fault
		case fd == 0 || d.node != nil:
			return badFile
		}
		b = b[:min(len(b), maxWrite-total)]
		for total += len(b); len(b) > 0; {
			n := min(len(b), piece)
			g.Charge(n)
			g.Write(fd, b[:n])
			b = b[n:]
		}
	}
	return written(g.Memory().WriteUint32Le(u32(p[3]), uint32(total))) //nolint:gosec // at most maxWrite
}

// fdPwrite: a stream has no position, and files are read only.
func fdPwrite(g Guest, p []uint64) Errno {
	if errno := fdOpen(g, p); errno != OK {
		return errno
	}
	list, errno := vectors(g, u32(p[1]), u32(p[2]))
	if errno != OK {
		return errno
	}
	for ; len(list) > 0; list = list[8:] {
		switch b, ok := block(g, list); {
		case !ok:
			return fault
		case len(b) > 0:
			return badFile
		}
	}
	return written(g.Memory().WriteUint32Le(u32(p[4]), 0))
}
