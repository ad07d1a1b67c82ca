package main

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// watchModule swaps the module whenever its file changes, until ctx ends.
func (s *session) watchModule(ctx context.Context) {
	for ctx.Err() == nil {
		path, moved := s.file.watch()
		here, leave := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			select {
			case <-moved:
				leave()
			case <-here.Done():
			}
		})
		s.watchModuleAt(here, path)
		leave()
		wg.Wait()
	}
}

func (s *session) watchModuleAt(ctx context.Context, path string) {
	file := filewatch.File{
		Path: path, Sum: s.moduleSum, MaxSize: host.DefaultMaxModuleSize,
		OnChange: func(ctx context.Context, wasm []byte) {
			if s.halfWritten(ctx, path, wasm) {
				return // the rest is a change of its own
			}
			_ = s.replace(ctx, func(ctx context.Context) error { s.swapFile(ctx, wasm); return nil })
		},
		OnError: func(err error) {
			s.log.Warn("the module's file cannot be read; the module that runs stays", "error", err.Error(), "controller", s.name)
		},
	}
	_ = file.Run(ctx) // its error has been told to OnError
}

// How long a file that cannot be a module may rest while it is being written,
// since over a network it may stop for a while, and how often it is looked at.
const (
	writeRest = 2 * time.Second
	writeLook = 100 * time.Millisecond
)

// halfWritten waits, where bytes of a file cannot be a module, whether they become
// others, and reports whether they have.
func (s *session) halfWritten(ctx context.Context, path string, wasm []byte) bool {
	if len(host.Inspect(ctx, wasm).Problems) == 0 {
		return false
	}
	look := time.NewTicker(writeLook)
	defer look.Stop()
	rested := time.NewTimer(s.writeRest)
	defer rested.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-rested.C:
			return false
		case <-look.C:
		}
		if now, err := readModule(path); err != nil || !bytes.Equal(now, wasm) {
			return true
		}
	}
}

// reload swaps in what the module's file has.
func (s *session) reload(ctx context.Context) {
	wasm, err := readModule(s.file.path())
	if err != nil {
		s.log.Warn("the module's file cannot be read; the module that runs stays", "error", err.Error(), "controller", s.name)
		return
	}
	s.swapFile(ctx, wasm)
}

// swapFile swaps in bytes of the module's file.
func (s *session) swapFile(ctx context.Context, wasm []byte) {
	switch _, err := s.swap(ctx, wasm, swapHow{why: "its file changed"}); {
	case errors.Is(err, host.ErrSameModule):
		s.log.Info("the module's file has what runs already", "controller", s.name)
	case err != nil:
		s.log.Warn("the module's file was not swapped in; the module that runs stays", "digest", shortDigest(host.DigestOf(wasm)),
			"error", err.Error(), "controller", s.name)
	}
}
