package flags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// triggerSignals are the values of --trigger-on-signal.
var triggerSignals = map[string]os.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// validateTriggers checks the flags that are about when objects are reconciled.
func (o *Controller) validateTriggers() error {
	var errs []error
	if _, err := o.triggers(nil); err != nil {
		errs = append(errs, err)
	}
	switch {
	case o.Debounce.Quiet < 0 || o.Debounce.Max < 0:
		errs = append(errs, errors.New("--debounce and --debounce-max must not be negative"))
	case o.Debounce.Max > 0 && o.Debounce.Max < o.Debounce.Quiet:
		errs = append(errs, fmt.Errorf("--debounce-max %v: is less than --debounce %v", o.Debounce.Max, o.Debounce.Quiet))
	}
	return errors.Join(errs...)
}

// triggers are what leads to reconciles besides watches; stdin is read where lines
// of it are.
func (o *Controller) triggers(stdin io.Reader) ([]trigger.Source, error) {
	var sources []trigger.Source
	var errs []error
	if o.resync != 0 {
		t, err := trigger.NewResync(o.resync)
		if err != nil {
			errs = append(errs, fmt.Errorf("--resync: %w", err))
		}
		sources = append(sources, t)
	}
	for _, spec := range o.schedule {
		t, err := trigger.NewCron(spec, time.Local)
		if err != nil {
			errs = append(errs, fmt.Errorf("--schedule: %w", err))
		}
		sources = append(sources, t)
	}
	if o.onSignal != "" {
		sig, ok := triggerSignals[o.onSignal]
		if !ok {
			errs = append(errs, fmt.Errorf("--trigger-on-signal %q: want USR1 or USR2", o.onSignal))
		}
		sources = append(sources, signalTrigger{sig})
	}
	if o.onStdin {
		sources = append(sources, trigger.Lines{Name: "stdin", Reader: stdin})
	}
	return sources, errors.Join(errs...)
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
