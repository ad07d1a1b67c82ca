package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// triggerSignals are the values of --trigger-on-signal.
var triggerSignals = map[string]os.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// validateTriggers checks the flags that are about when objects are reconciled.
func (o *controllerOptions) validateTriggers() error {
	var errs []error
	if _, err := o.triggers(kubeapi.Kind{}, nil, nil); err != nil {
		errs = append(errs, err)
	}
	switch {
	case o.debounce < 0 || o.debounceMax < 0:
		errs = append(errs, errors.New("--debounce and --debounce-max must not be negative"))
	case o.debounceMax > 0 && o.debounceMax < o.debounce:
		errs = append(errs, fmt.Errorf("--debounce-max %v: is less than --debounce %v", o.debounceMax, o.debounce))
	}
	return errors.Join(errs...)
}

// triggers are what leads to reconciles of a kind besides watches; stdin is read
// where lines of it are.
func (o *controllerOptions) triggers(kind kubeapi.Kind, stdin io.Reader, log *slog.Logger) ([]trigger.Source, error) {
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
		sources = append(sources, trigger.Signal{Signal: sig})
	}
	if o.onStdin {
		sources = append(sources, trigger.Lines{
			Name: "stdin", Reader: stdin, Scope: queue.Scope{ClusterScoped: !kind.Namespaced},
			OnError: func(err error) { log.Warn("a line of stdin names no object, and is passed over", "error", err.Error()) },
		})
	}
	return sources, errors.Join(errs...)
}
