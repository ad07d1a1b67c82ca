package main

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/host"
)

// errGaveWay is the error of a module that was still being prepared when another
// one was asked for.
var errGaveWay = errors.New("it was still being prepared when another module was asked for")

// errCut ends an attempt of a preparation that is begun again.
var errCut = errors.New("something else comes first")

// meanwhile has a module prepared, which waits for kinds, watches and a compiler
// and changes nothing, and lets nothing else wait for it. A generation that does
// worse is taken back, and what serve is told is done: the preparation is cut
// short for that, and begun again. Where it is another module that is asked for,
// it gives way for good.
func (s *session) meanwhile(ctx context.Context, prepare func(context.Context) error) error {
	for s.next == nil {
		c, err := s.attempt(ctx, prepare)
		switch {
		case !errors.Is(err, errCut): // it has come to an end, whoever asked for what
			if c != nil {
				s.next = c
			}
			return err
		case c == nil:
			s.judge(ctx)
		case c.replaces:
			s.next = c
		default:
			c.done <- c.run(ctx)
		}
	}
	return errGaveWay
}

// attempt prepares once. The error is errCut where it was cut short, for the
// command if there is one, else for a generation that is to be taken back.
func (s *session) attempt(ctx context.Context, prepare func(context.Context) error) (*command, error) {
	attempt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	ended := make(chan error, 1)
	go func() { ended <- prepare(attempt) }() // awaited below
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		var first *command
		select {
		case err := <-ended:
			return nil, err
		case c := <-s.todo:
			first = &c
		case <-s.hangup:
			if first = s.reloading(); first == nil {
				continue
			}
		case <-tick.C:
			if !s.trials.failing(time.Now()) {
				continue
			}
		}
		cut(errCut)
		err := <-ended
		if err != nil && !errors.Is(err, host.ErrSameModule) {
			err = errCut
		}
		return first, err
	}
}

// reloading is the command of a SIGHUP, or nil where the file has what is being
// prepared.
func (s *session) reloading() *command {
	if wasm, err := readModule(s.file.path()); err == nil && s.trials.preparing(host.DigestOf(wasm)) {
		return nil
	}
	return &command{
		run: func(ctx context.Context) error { s.reload(ctx); return nil }, done: make(chan error, 1), replaces: true,
	}
}
