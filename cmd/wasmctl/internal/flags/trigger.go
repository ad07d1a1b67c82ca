// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// triggerSignals are the values of --trigger-on-signal.
var triggerSignals = map[string]os.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// triggers returns the triggers by signal and stdin of a spec.
func triggers(on v1alpha1.TriggerOn, stdin io.Reader) (list []wasmctl.Trigger) {
	if on.Signal != "" {
		list = append(list, wasmctl.ReconcileOnSource(signalTrigger{triggerSignals[on.Signal]}))
	}
	if on.Stdin {
		list = append(list, wasmctl.ReconcileOnLines("stdin", stdin))
	}
	return list
}

// signalTrigger requests all objects when the process receives a signal, such as SIGUSR1.
// Signals that arrive while one is being handled count as one.
type signalTrigger struct{ os.Signal }

// Run implements wasmctl.Source. While it runs, the signal does not end the process.
func (s signalTrigger) Run(ctx context.Context, reconcile func(context.Context, ...abi.Key)) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, s.Signal)
	defer signal.Stop(got)
	for {
		select {
		case <-got:
			reconcile(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// String implements wasmctl.Source.
func (s signalTrigger) String() string { return "signal " + s.Signal.String() }
