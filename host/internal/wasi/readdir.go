// SPDX-License-Identifier: Apache-2.0

package wasi

// direntSize is what an entry of a folder takes before its name.
const direntSize = 24

// dots are the entries before the files: "." and "..".
const dots = 2

// fdReaddir writes the entries of a folder that come after so many, as many as there is
// room for. Where the room ends, an entry without its name says that there are more.
func fdReaddir(g Guest, p []uint64) Errno {
	size, from := u32(p[2]), p[3]
	if size < direntSize {
		return invalid
	}
	d := find(g, i32(p[0]))
	if d == nil || d.node == nil || !d.node.folder() {
		return badFile
	}
	all := dots + uint64(len(d.node.children))
	if from > all {
		return noEntry
	}
	out, ok := g.Memory().Read(u32(p[1]), size)
	if !ok {
		return fault
	}
	for next := from; next < all && len(out) > 0; {
		next++
		switch next {
		case 1:
			out = entry(g, out, next, ".", d.node)
		case dots:
			out = entry(g, out, next, "..", &g.Files().root) // nobody needs its number
		default:
			n := d.node.children[next-dots-1]
			out = entry(g, out, next, n.name, n)
		}
	}
	return written(g.Memory().WriteUint32Le(u32(p[4]), size-uint32(len(out)))) //nolint:gosec // less than size
}

// entry writes an entry of a folder, before the one that comes next, and returns the
// room that is left: none, where there is too little.
func entry(g Guest, out []byte, next uint64, name string, n *node) []byte {
	g.Charge(direntSize + len(name))
	if len(out) < direntSize {
		return nil
	}
	le.PutUint64(out, next)
	le.PutUint64(out[8:], n.serial)
	le.PutUint32(out[16:], uint32(len(name))) //nolint:gosec // at most maxPath
	le.PutUint32(out[20:], uint32(n.kind()))
	if out = out[direntSize:]; len(out) < len(name) {
		return nil
	}
	return out[copy(out, name):]
}
