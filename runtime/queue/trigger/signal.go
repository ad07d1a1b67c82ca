package trigger

import (
	"context"
	"os"
	"os/signal"
)

// Signal asks for all objects when the process gets a signal, such as SIGHUP or
// SIGUSR1. Several that come while one is handled are one.
type Signal struct{ Signal os.Signal }

// Run implements Source. While it runs, the signal does not end the process.
func (s Signal) Run(ctx context.Context, emit Emit) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, s.Signal)
	defer signal.Stop(got)
	for {
		select {
		case <-got:
			emit(ctx, Trigger{All: true})
		case <-ctx.Done():
			return nil
		}
	}
}

// String implements Source.
func (s Signal) String() string { return "signal " + s.Signal.String() }
