package engine

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/host"
)

// judgeEvery is how often a revision on probation is judged, beside each of
// its failures.
const judgeEvery = 250 * time.Millisecond

// Errors of a module that was still being prepared.
var (
	// errSuperseded says that another module was requested meanwhile.
	errSuperseded = errors.New("superseded by another module while it was being prepared")
	// errCut ends an attempt of a preparation that is begun again.
	errCut = errors.New("interrupted by a more urgent change")
	// ErrPreparing says that the same module was requested again.
	ErrPreparing = errors.New("this module is already being prepared")
	// ErrStopping says that the controller ends.
	ErrStopping = errors.New("the controller is stopping")
)

// loop is the goroutine that changes a controller while it runs.
type loop struct {
	todo  chan command
	next  *command      // what comes next, whatever is in todo; the loop's own
	ended chan struct{} // closed when the loop has ended
}

// command is something for the loop to do.
type command struct {
	run  func(context.Context) error
	done chan error // has room for one
	// replaces says that it is about which module is live: one that is still being
	// prepared is not wanted any longer, unless it has this digest.
	replaces bool
	digest   string
}

func (l *loop) init() { l.todo, l.ended = make(chan command), make(chan struct{}) }

// serve does whatever changes the controller while it runs, one thing after the
// other: swaps, settings, watches of kinds that come late. It returns when ctx
// has ended, and everything that it started.
func (c *Controller) serve(ctx context.Context) {
	defer close(c.loop.ended)
	defer c.rollout.Close()
	ctx, end := context.WithCancel(ctx)
	defer end() // after a panic too: it must not wait for what goes on forever
	tick, judging := time.NewTicker(judgeEvery), true
	defer tick.Stop()
	c.rollout.AwaitPending(ctx)
	for ctx.Err() == nil {
		if on := c.rollout.Judging(); on != judging { // an idle controller takes no CPU
			if judging = on; on {
				tick.Reset(judgeEvery)
			} else {
				tick.Stop()
			}
		}
		if next := c.loop.next; next != nil {
			c.loop.next = nil
			next.done <- next.run(ctx)
			continue
		}
		select {
		case cmd := <-c.loop.todo:
			cmd.done <- cmd.run(ctx)
		case <-c.rollout.Wake():
			c.rollout.Judge(ctx)
		case <-tick.C:
			c.rollout.Judge(ctx)
		case <-ctx.Done():
		}
	}
}

// Do has the loop do something, and returns its error. It is begun unless ctx or
// the loop ends before, and goes on though ctx ends.
func (c *Controller) Do(ctx context.Context, run func(context.Context) error) error {
	return c.ask(ctx, command{run: run})
}

// ask is Do for any command.
func (c *Controller) ask(ctx context.Context, cmd command) error {
	cmd.done = make(chan error, 1)
	select {
	case c.loop.todo <- cmd:
	case <-c.loop.ended:
		return ErrStopping
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-cmd.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Meanwhile implements rollout.Loop. It has a module prepared, which waits for
// kinds, watches and a compiler and changes nothing, and lets nothing else wait
// for it. A revision that does worse is rolled back, and other requests to the
// loop are handled: that interrupts the preparation, which then starts again. If
// another module is requested, it is superseded for good.
func (c *Controller) Meanwhile(ctx context.Context, prepare func(context.Context) error) error {
	for c.loop.next == nil {
		cmd, err := c.attempt(ctx, prepare)
		switch {
		case !errors.Is(err, errCut): // it has ended, whatever was requested
			c.loop.next = cmd
			return err
		case cmd == nil:
			c.rollout.Judge(ctx)
		case cmd.replaces:
			c.loop.next = cmd
		default:
			cmd.done <- cmd.run(ctx)
		}
	}
	return errSuperseded
}

// attempt prepares once. The error is errCut if it was interrupted, for a
// command if there is one, else for a rollback.
func (c *Controller) attempt(ctx context.Context, prepare func(context.Context) error) (*command, error) {
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
		case cmd := <-c.loop.todo:
			if cmd.digest != "" && c.rollout.Preparing(cmd.digest) {
				cmd.done <- ErrPreparing
				continue
			}
			first = &cmd
		case <-tick.C:
			if !c.rollout.Failing(time.Now()) {
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
