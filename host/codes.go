package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// Codes has the compiled code of the modules that share it: modules with the same
// bytes are compiled once, and the code is there once. Code has no state: what is a
// module's is in its instances. Those of a module with several controllers may share what
// its start code has made. The zero Codes is ready for use, by any number of
// goroutines.
type Codes struct {
	list    table[codecache.ID, *sharedCode]
	commons table[string, *common] // by the digest of the module
	once    sync.Once
	start   time.Time // of the clock that all have; written by once
}

// sharedCode is compiled code. Who waits for the turn is one of its users.
type sharedCode struct {
	of   *Codes
	id   codecache.ID
	turn chan struct{} // who has put something in may compile, and use what is below

	runtime  vm.Runtime
	cache    vm.Cache
	compiled vm.Compiled // nil before
	inFile   []byte
	base     *linear.Image
	maxStack int64
	globals  int
}

// began is when the first module asked: a clock must not go back where instances of one
// share memory with those of another.
func (s *Codes) began() time.Time {
	if s == nil {
		return time.Now()
	}
	s.once.Do(func() { s.start = time.Now() })
	return s.start
}

// share gives code what is compiled already under an id, or else what build makes
// of it.
func (s *Codes) share(ctx context.Context, id codecache.ID, code *code, build func() error) error {
	e := s.list.enter(id, &sharedCode{of: s, id: id, turn: make(chan struct{}, 1)})
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), e.leave(ctx))
	}
	if e.compiled == nil {
		if err := build(); err != nil {
			return errors.Join(err, e.leave(ctx)) // the next one in the row tries
		}
		e.runtime, e.cache, e.compiled, e.base = code.runtime, code.cache, code.compiled, code.base
		e.inFile, e.maxStack, e.globals = code.inFile, code.maxStack, code.globals
	}
	code.runtime, code.cache, code.compiled, code.base, code.shared = e.runtime, e.cache, e.compiled, e.base, e
	code.inFile, code.maxStack, code.globals = e.inFile, e.maxStack, e.globals
	return nil
}

// leave closes the code after its last user.
func (e *sharedCode) leave(ctx context.Context) error {
	if !e.of.list.leave(e.id) || e.runtime == nil {
		return nil
	}
	return closeCode(ctx, e.runtime, e.cache, e.base)
}

func closeCode(ctx context.Context, runtime vm.Runtime, cache vm.Cache, base *linear.Image) error {
	err := runtime.Close(ctx)
	if base != nil {
		base.Close()
	}
	if cache != nil {
		err = errors.Join(err, cache.Close(ctx))
	}
	return err
}

// share compiles, or takes what another module of the same bytes has compiled.
func (c compiler) share(ctx context.Context, code *code, src *source) error {
	build := func() error { return c.build(ctx, code, src) }
	if c.cfg.Codes == nil || c.cfg.Isolation != nil {
		return build()
	}
	return c.cfg.Codes.share(ctx, src.id, code, build)
}
