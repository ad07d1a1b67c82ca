package applier

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// PausedAnnotation pauses an object: it is not reconciled, nor finalized, while
// it has the annotation with a value that does not say no. See Paused.
const PausedAnnotation = "wasmctl.dev/paused"

// Paused reports whether an object with this value of PausedAnnotation is
// paused: any value does, "true" as well as a note for others, but for the empty
// string and what strconv.ParseBool takes for false.
func Paused(value string) bool {
	no, err := strconv.ParseBool(strings.TrimSpace(value))
	return strings.TrimSpace(value) != "" && (err != nil || no)
}

// head is what a run reads of its object. The slices are parts of the object's
// bytes.
type head struct {
	uid, resourceVersion []byte
	deleting             bool // deletion was requested
	paused               bool
	finalizer            bool // it has the module's finalizer
}

// readHead reads the metadata of a packed object without decoding the rest of
// it, and without allocating.
func readHead(object []byte, finalizer string) (h head, err error) {
	c := cursor{b: object}
	err = c.eachKey(func(key []byte) error {
		if string(key) != "metadata" {
			return c.skip()
		}
		return c.eachKey(func(key []byte) error { return h.read(&c, key, finalizer) })
	})
	return h, err
}

// read reads one field of the metadata.
func (h *head) read(c *cursor, key []byte, finalizer string) (err error) {
	switch string(key) {
	case "uid":
		h.uid, err = c.str()
	case "resourceVersion":
		h.resourceVersion, err = c.str()
	case "deletionTimestamp":
		h.deleting = !c.isNil()
		err = c.skip()
	case "annotations":
		err = c.eachKey(func(key []byte) error {
			if string(key) != PausedAnnotation {
				return c.skip()
			}
			value, err := c.str()
			h.paused = Paused(string(value))
			return err
		})
	case "finalizers":
		err = c.each(func() error {
			name, err := c.str()
			h.finalizer = h.finalizer || finalizer != "" && string(name) == finalizer
			return err
		})
	default:
		err = c.skip()
	}
	return err
}

var errMsgpack = errors.New("object: not the msgpack of a Kubernetes object")

// cursor reads msgpack front to back, as far as the objects of the store need
// it: what abi.AppendValue writes. It returns errMsgpack for all else, and never
// panics.
type cursor struct {
	b   []byte
	pos int
}

func (c *cursor) isNil() bool { return c.pos < len(c.b) && c.b[c.pos] == 0xc0 }

// take returns the next n bytes.
func (c *cursor) take(n int) ([]byte, error) {
	if n < 0 || n > len(c.b)-c.pos {
		return nil, errMsgpack
	}
	c.pos += n
	return c.b[c.pos-n : c.pos], nil
}

// uint reads a big-endian number of so many bytes.
func (c *cursor) uint(bytes int) (uint64, error) {
	b, err := c.take(bytes)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-bytes:], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

// size reads the head of a string, a map or an array, whose short form is short
// to short+mask, and whose long forms begin with one byte of long and have a
// length of 1<<(first+i) bytes. A length that the bytes cannot hold is an error.
func (c *cursor) size(short, mask byte, first int, long ...byte) (int, error) {
	head, err := c.take(1)
	if err != nil {
		return 0, err
	}
	if head[0]&^mask == short {
		return int(head[0] & mask), nil
	}
	for i, l := range long {
		if head[0] == l {
			n, err := c.uint(1 << (first + i))
			if err != nil || n > uint64(len(c.b)) {
				return 0, errMsgpack
			}
			return int(n), nil
		}
	}
	return 0, errMsgpack
}

// str reads a string; nil is the empty one.
func (c *cursor) str() ([]byte, error) {
	if c.isNil() {
		c.pos++
		return nil, nil
	}
	n, err := c.size(0xa0, 0x1f, 0, 0xd9, 0xda, 0xdb)
	if err != nil {
		return nil, err
	}
	return c.take(n)
}

// eachKey calls f with each key of a map; f must read the value. Nil is a map
// without keys.
func (c *cursor) eachKey(f func(key []byte) error) error {
	if c.isNil() {
		c.pos++
		return nil
	}
	n, err := c.size(0x80, 0x0f, 1, 0xde, 0xdf)
	for ; n > 0 && err == nil; n-- {
		var key []byte
		if key, err = c.str(); err == nil {
			err = f(key)
		}
	}
	return err
}

// each calls f for each element of an array; f must read it.
func (c *cursor) each(f func() error) error {
	if c.isNil() {
		c.pos++
		return nil
	}
	n, err := c.size(0x90, 0x0f, 1, 0xdc, 0xdd)
	for ; n > 0 && err == nil; n-- {
		err = f()
	}
	return err
}

// skip passes over one value, whatever is in it.
func (c *cursor) skip() error {
	for left := 1; left > 0; left-- {
		if c.pos >= len(c.b) {
			return errMsgpack
		}
		var n int
		var err error
		switch h := c.b[c.pos]; {
		case h <= 0x7f, h >= 0xe0, h == 0xc0, h == 0xc2, h == 0xc3:
			c.pos++
		case h >= 0xcc && h <= 0xcf:
			_, err = c.take(1 + 1<<(h-0xcc))
		case h >= 0xd0 && h <= 0xd3:
			_, err = c.take(1 + 1<<(h-0xd0))
		case h == 0xca, h == 0xcb:
			_, err = c.take(1 + 4<<(h-0xca))
		case h >= 0x80 && h <= 0x8f, h == 0xde, h == 0xdf:
			n, err = c.size(0x80, 0x0f, 1, 0xde, 0xdf)
			left += 2 * n
		case h >= 0x90 && h <= 0x9f, h == 0xdc, h == 0xdd:
			n, err = c.size(0x90, 0x0f, 1, 0xdc, 0xdd)
			left += n
		default:
			_, err = c.str()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
