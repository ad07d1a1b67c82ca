// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/load"
)

// Codes has the compiled code of the modules that share it: modules with the same bytes are
// compiled once, and their code is in memory once. Code has no state, which is in the
// instances. The controllers of a module with several of them may also share the result of
// its start code. The zero Codes is ready for use, by any number of goroutines.
type Codes struct {
	codes  load.Shared
	images instance.Shared
	once   sync.Once
	start  time.Time // of the clock of all modules; written by once
}

// began returns when the first module asked: a clock must not go back if instances of one
// module share memory with those of another.
func (s *Codes) began() time.Time {
	if s == nil {
		return time.Now()
	}
	s.once.Do(func() { s.start = time.Now() })
	return s.start
}

func (s *Codes) sharedCode() *load.Shared {
	if s == nil {
		return nil
	}
	return &s.codes
}

func (s *Codes) sharedImages() *instance.Shared {
	if s == nil {
		return nil
	}
	return &s.images
}

// program is compiled code with its users: a rollback makes a new revision of code that was
// kept.
type program struct {
	*load.Code

	home home
	// refs is 1 per revision and 1 for being kept. At 0 everything is closed, and it never
	// rises again.
	refs atomic.Int64
}

// home is where the instances of a program are: in this process, or in another.
type home interface {
	Maker(spec *instance.Spec) instance.Maker
	Stats() (isolate.Stats, bool)
	Close(ctx context.Context) error
}

// here is this process.
type here struct {
	*load.Code

	images *instance.Shared
}

// Maker implements home.
func (h here) Maker(spec *instance.Spec) instance.Maker {
	return instance.NewLocalMaker(spec, h.images)
}

// Stats implements home: there is no guest process.
func (h here) Stats() (isolate.Stats, bool) { return isolate.Stats{}, false }

// retain takes a reference for another revision, or for being kept. The caller has one, or
// holds the lock under which the last is given back.
func (p *program) retain() { p.refs.Add(1) }

// release gives a reference back; the last one closes the code.
func (p *program) release(ctx context.Context) error {
	if p.refs.Add(-1) > 0 {
		return nil
	}
	return p.home.Close(ctx)
}
