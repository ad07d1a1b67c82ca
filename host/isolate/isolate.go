// SPDX-License-Identifier: Apache-2.0

// Package isolate runs modules in processes of their own. Serve is such a process: it has
// code and instances. Everything else stays in the host's process, which answers the
// requests of the guests. So a guest that escapes from its sandbox is in a process that has
// only its own memory. The host does not trust the process.
package isolate

import "context"

// Isolation starts guest processes, in which Serve runs. All methods are safe for concurrent
// use.
type Isolation interface {
	// Process returns the process, and starts one if none runs. It lives until each caller
	// has called Release.
	Process(ctx context.Context) (Process, error)
}

// Process is a guest process. All methods are safe for concurrent use.
type Process interface {
	// Connect returns a connection that Serve serves in the process. It ends with the
	// process.
	Connect() (Conn, error)
	// Kill ends the process for this reason, and returns why it has ended.
	Kill(reason error) error
	// Ended returns why the process has ended, and nil while it runs.
	Ended() error
	// Dir is a directory of its own, in which it finds files from the host; empty if there
	// is none.
	Dir() string
	// Release gives it back.
	Release()
	// Overhead returns the memory that the process takes for each module, in bytes, in
	// addition to linear memory.
	Overhead() int64
	// Stats returns its figures.
	Stats() Stats
}

// Stats are figures of a guest process.
type Stats struct {
	PID int
	// Memory is the resident memory, in bytes; 0 if it is not known.
	Memory int64
}
