// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package guestprocess

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/isolate"
)

// Supported reports whether this system has guest processes.
const Supported = false

// ErrNoJob is returned by Serve.
var ErrNoJob = errors.New("guests-for-run: for internal use, on Linux only")

// process is never started.
type process struct {
	of        *Isolation
	cmd       *exec.Cmd
	trouble   subprocess.Head
	startedAt time.Time
	dir       string
	control   *os.File
	ended     chan struct{}
}

// namespaces are not known on this system.
const namespaces = 0

func (p *process) open(uintptr) (*os.File, error) { return nil, errors.ErrUnsupported }

func (p *process) Connect() (isolate.Conn, error) { return nil, errors.ErrUnsupported }

func (p *process) Kill(error) error { return errors.ErrUnsupported }

func (p *process) end(error) {}

func (p *process) Ended() error { return errors.ErrUnsupported }

func (p *process) Dir() string { return p.dir }

func (p *process) Release() {}

func (p *process) Stats() isolate.Stats { return isolate.Stats{} }

// Serve returns ErrNoJob.
func Serve(io.Reader) error { return ErrNoJob }
