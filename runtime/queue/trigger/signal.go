package trigger

import (
	"context"
	"os"
	"os/signal"
)

// Signal requests all objects when the process receives a signal. Signals that arrive while one is being handled count as one.
type Signal struct{ os.Signal }

// Run implements Source. While it runs, the signal does not end the process.
func (s Signal) Run(ctx context.Context, emit Emit) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, s.Signal)
	defer signal.Stop(got)
	return Chan[os.Signal]{C: got}.Run(ctx, emit)
}

// String implements Source.
func (s Signal) String() string { return "signal " + s.Signal.String() }
