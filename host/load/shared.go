// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
	"github.com/wasmctl/wasmctl/host/share"
)

// Shared holds the compiled code of modules that share it: modules with the same bytes are
// compiled once, and their code is in memory once. The zero Shared is ready for use, by any
// number of goroutines.
type Shared struct {
	codes share.Table[codecache.ID, *sharedCode]
}

// Len returns the number of different codes.
func (s *Shared) Len() int { return s.codes.Len() }

// sharedCode is compiled code with several users. A goroutine that waits for its turn is
// one of them.
type sharedCode struct {
	of   *Shared
	id   codecache.ID
	turn chan struct{} // a one-token semaphore: its holder may compile and use the fields below

	bill     share.Bill
	machine  *machine // nil before
	maxStack int64
	globals  int
}

// share gives code the machine that was compiled for an id, or otherwise the result of
// build.
func (s *Shared) share(ctx context.Context, id codecache.ID, code *Code, build func() error) error {
	e := s.codes.Enter(id, &sharedCode{of: s, id: id, turn: make(chan struct{}, 1)})
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), e.leave(ctx))
	}
	if e.machine == nil {
		if err := build(); err != nil {
			return errors.Join(err, e.leave(ctx)) // the next waiting user tries
		}
		e.machine, e.maxStack, e.globals = code.machine, code.MaxStack, code.Globals
	}
	code.machine, code.MaxStack, code.Globals, code.shared = e.machine, e.maxStack, e.globals, e
	return code.charge(&e.bill)
}

// leave closes the code after its last user.
func (e *sharedCode) leave(ctx context.Context) error {
	if !e.of.codes.Leave(e.id) || e.machine == nil {
		return nil
	}
	return e.machine.close(ctx)
}
