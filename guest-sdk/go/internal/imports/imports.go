// SPDX-License-Identifier: Apache-2.0

// Package imports wraps the host functions of the reconciler ABI (abi/ABI.md,
// section 5) as Go functions. In a WebAssembly build they are the functions of
// the module's host. Other builds have no host: tests bring their own.
package imports

// Host has all host functions. It is an interface so that native tests can
// implement the host.
type Host interface {
	// Call runs an operation; see Op. The host writes the answer to dst if it
	// fits, otherwise it stores the answer for Take.
	Call(op *Op, req, dst []byte) (status int32, length int)
	// Take copies the stored answer into dst and returns the number of copied
	// bytes; a negative result is a status.
	Take(dst []byte) int32
	// Log writes UTF-8 text or a msgpack map to the host's log.
	Log(level int32, msg []byte)
	// LogLevel returns the lowest level that the host records.
	LogLevel() int32
	// Metric adds to a counter or sets a gauge, and returns a status.
	Metric(kind int32, name string, value float64) int32
	// NowMS returns the Unix time in milliseconds.
	NowMS() int64
	// MonoNS reads a clock that never goes back, in nanoseconds.
	MonoNS() int64
	// Random fills dst and reports whether the host had random bytes.
	Random(dst []byte) bool
	// Cancelled reports whether the host is stopping.
	Cancelled() bool
	// Budget returns the remaining budget of a kind, or -1 if it is unlimited
	// or unknown.
	Budget(kind int32) int64
}

// Unpack splits the result of an operation into status and length.
func Unpack(v uint64) (status int32, length int) {
	return int32(uint32(v >> 32)), int(uint32(v))
}
