// Package imports has the host functions of the reconciler ABI (abi/ABI.md,
// section 5) as Go functions. A Wasm build has those of the module's host. There
// are none elsewhere: tests bring a host of their own.
package imports

// Host is the host functions that do not depend on an operation. It is an
// interface so that natively run tests can be the host.
type Host interface {
	// Call carries out an operation; see Op. The answer has been written to
	// dst if it fits; else the host holds it for Take.
	Call(op *Op, req, dst []byte) (status int32, length int)
	// Take copies the held answer from offset off on into dst and returns how
	// many bytes it copied; below 0 is a status.
	Take(dst []byte, off int) int32
	// Log writes UTF-8 text or a msgpack map to the host's log.
	Log(level int32, msg []byte)
	// LogLevel is the lowest level that the host keeps.
	LogLevel() int32
	// Metric counts or sets a metric; the answer is a status.
	Metric(kind int32, name string, value float64) int32
	// NowMS is the Unix time in milliseconds.
	NowMS() int64
	// MonoNS is a clock that never goes back, in nanoseconds.
	MonoNS() int64
	// Random fills dst, at most 65536 bytes; the answer is a status.
	Random(dst []byte) int32
	// Cancelled reports whether the host is stopping.
	Cancelled() bool
	// Budget is what is left of a kind; -1: not bounded, or not known.
	Budget(kind int32) int64
}

// Unpack splits what an operation returns into status and length.
func Unpack(v uint64) (status int32, length int) {
	return int32(uint32(v >> 32)), int(uint32(v))
}
