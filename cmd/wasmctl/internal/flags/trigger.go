package flags

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// triggerSignals are the values of --trigger-on-signal.
var triggerSignals = map[string]os.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// triggers returns the sources that a spec takes from the process.
func triggers(on v1alpha1.TriggerOn, stdin io.Reader) (sources []trigger.Source) {
	if on.Signal != "" {
		sources = append(sources, signalTrigger{triggerSignals[on.Signal]})
	}
	if on.Stdin {
		sources = append(sources, trigger.Lines{Name: "stdin", Reader: stdin})
	}
	return sources
}

// signalTrigger asks for all objects when the process gets a signal, such as SIGHUP or
// SIGUSR1. Several that come while one is handled are one.
type signalTrigger struct{ os.Signal }

// Run implements trigger.Source. While it runs, the signal does not end the process.
func (s signalTrigger) Run(ctx context.Context, emit trigger.Emit) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, s.Signal)
	defer signal.Stop(got)
	for {
		select {
		case <-got:
			emit(ctx, trigger.Trigger{All: true})
		case <-ctx.Done():
			return nil
		}
	}
}

// String implements trigger.Source.
func (s signalTrigger) String() string { return "signal " + s.Signal.String() }
