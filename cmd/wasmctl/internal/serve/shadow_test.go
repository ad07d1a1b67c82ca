// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl"
)

// TestVerdict_InterruptedTrialIsNoRefusal: a trial that ended because of another request to the controller, such as one for
// other options of the same spec, is repeated. Only an error of the module refuses it.
func TestVerdict_InterruptedTrialIsNoRefusal(t *testing.T) {
	for err, refused := range map[error]bool{
		wasmctl.ErrSuperseded: false, wasmctl.ErrStopping: false, wasmctl.ErrNotRunning: false, wasmctl.ErrPreparing: false,
		errors.New("is not WebAssembly"): true,
	} {
		u := &unit{module: &fetched{digest: "d"}}
		if ok, undecided := u.verdict(&trial{digest: "d", err: fmt.Errorf("controller[web]: %w", err)}); ok || undecided != nil || u.refused() != refused {
			t.Errorf("%v: %t, %v, refused %t", err, ok, undecided, u.refused())
		}
	}
}
