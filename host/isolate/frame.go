// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// frameKind is the kind of a frame between host and guest process. A connection belongs to
// one code or one instance, and both sides take turns on it: the host writes frameLoad,
// frameNew or frameEnter, and the process answers with frameDone. Between the two, the
// process may ask, and is answered with frameAnswer. Frames for lines that a guest logs and
// prints are not answered.
type frameKind byte

const (
	frameLoad   = frameKind(iota + 1) // code is to be loaded, for as long as the connection lives
	frameNew                          // an instance is to be made, for as long as the connection lives
	frameEnter                        // an entry is to be called
	frameAnswer                       // to a request
	frameDone                         // the result of a load, a new instance or a call
	frameOperation
	frameMetric
	frameCancelled
	frameGrow // linear memory
	frameLog
	framePrint
)

// frameHeader is the size of the header: the length of the rest, and the kind.
const frameHeader = 5

// Bounds of frames, in bytes.
const (
	maxFrame    = 5 << 20 // of a guest process: a message of abi.MaxBytes, a text, and numbers
	maxLoad     = 1 << 30 // of the host, which is trusted: a module in its largest form
	largeBuffer = 1 << 20 // a larger buffer is not used for the next frame
)

// errFrame is the error of bytes that are not a valid frame.
var errFrame = errors.New("sent an invalid message")

// frameConn is one side of a connection. One goroutine reads and one writes.
type frameConn struct {
	conn  Conn
	limit int // of frames that are read
	in    []byte
	out   []byte // the frame that is written next
	head  [frameHeader]byte
}

// Conn is a connection to a guest process. Its writing side can be closed alone:
// *net.UnixConn implements it.
type Conn interface {
	io.ReadWriteCloser

	CloseWrite() error
	SetDeadline(t time.Time) error
}

// read reads a frame. Its fields are valid until the next one is read.
func (c *frameConn) read() (frameKind, fields, error) {
	if _, err := io.ReadFull(c.conn, c.head[:]); err != nil {
		return 0, fields{}, err
	}
	n := binary.LittleEndian.Uint32(c.head[:])
	if int64(n) > int64(c.limit) {
		return 0, fields{}, fmt.Errorf("%w: %d bytes are more than %d", errFrame, n, c.limit)
	}
	if cap(c.in) < int(n) || cap(c.in) > largeBuffer && int(n) <= largeBuffer {
		c.in = make([]byte, n)
	}
	c.in = c.in[:n]
	if _, err := io.ReadFull(c.conn, c.in); err != nil {
		return 0, fields{}, err
	}
	return frameKind(c.head[4]), fields{c.in, false}, nil
}

// begin starts a frame. The following methods add its fields, and send sends it.
func (c *frameConn) begin(kind frameKind) *frameConn {
	if cap(c.out) > largeBuffer {
		c.out = nil
	}
	c.out = append(c.out[:0], 0, 0, 0, 0, byte(kind))
	return c
}

func (c *frameConn) u8(v byte) *frameConn {
	c.out = append(c.out, v)
	return c
}

func (c *frameConn) u64(v uint64) *frameConn {
	c.out = binary.LittleEndian.AppendUint64(c.out, v)
	return c
}

func (c *frameConn) i64(v int64) *frameConn {
	return c.u64(uint64(v)) //nolint:gosec // the bits of an i64
}

func (c *frameConn) text(s string) *frameConn {
	c.out = binary.LittleEndian.AppendUint32(c.out, uint32(len(s))) //nolint:gosec // short
	c.out = append(c.out, s...)
	return c
}

// rest adds the last field of a frame, in parts.
func (c *frameConn) rest(parts ...[]byte) *frameConn {
	for _, p := range parts {
		c.out = append(c.out, p...)
	}
	return c
}

func (c *frameConn) send() error {
	n := len(c.out) - frameHeader
	if n > math.MaxUint32 {
		return fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	binary.LittleEndian.PutUint32(c.out, uint32(n)) //nolint:gosec // checked
	_, err := c.conn.Write(c.out)
	return err
}

// fields are the content of a frame. Reading beyond its end returns zeros and sets bad.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if n > len(f.b) {
		f.b, f.bad = nil, true
		return nil
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) u8() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) u64() uint64 {
	if b := f.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (f *fields) i64() int64 { return int64(f.u64()) } //nolint:gosec // the bits of an i64

// text reads a text of at most most bytes.
func (f *fields) text(most int) string {
	b := f.take(4)
	if b == nil {
		return ""
	}
	n := binary.LittleEndian.Uint32(b)
	if int64(n) > int64(most) {
		f.bad = true
		return ""
	}
	return string(f.take(int(n)))
}

// rest reads the last field.
func (f *fields) rest() []byte {
	b := f.b
	f.b = nil
	return b
}

// end returns an error if a field was missing, or one is left.
func (f *fields) end() error {
	if f.bad || len(f.b) > 0 {
		return errFrame
	}
	return nil
}
