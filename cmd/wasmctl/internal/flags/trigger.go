package flags

import (
	"io"
	"os"
	"syscall"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// triggerSignals are the values of --trigger-on-signal.
var triggerSignals = map[string]os.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2}

// triggers returns the triggers that a spec takes from the process.
func triggers(on v1alpha1.TriggerOn, stdin io.Reader) (list []wasmctl.Trigger) {
	if on.Signal != "" {
		list = append(list, wasmctl.ReconcileOnSignal(triggerSignals[on.Signal]))
	}
	if on.Stdin {
		list = append(list, wasmctl.ReconcileOnLines("stdin", stdin))
	}
	return list
}
