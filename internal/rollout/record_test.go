// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// recordOf returns the record of revision 2, which is on probation after revision 1.
func recordOf(cfg probation.Config) *record {
	r := &record{wake: make(chan struct{}, 1), counts: map[uint64]*runCounts{}, proven: 1, windows: newWindows()}
	trial := newTrial(cfg, 2, r.windows)
	r.trial = &trial
	return r
}

// A revision whose guests can no longer start does worse: failures of its start code count.
func TestRecord_GuestsThatDoNotStartCount(t *testing.T) {
	r := recordOf(probation.Config{})
	for i := range 3 {
		r.end(&applier.Outcome{
			Key: abi.Key{Name: fmt.Sprint(i)}, Revision: 2, DecidedBy: applier.DecidedByBackoff, Failure: abi.FailureTrap,
			Err: fmt.Errorf("acquire an instance: %w", &abi.CallError{Kind: abi.FailureTrap, Err: errors.New("unreachable")}),
		})
	}
	if _, live := r.verdicts(time.Now()); live.Verdict != probation.Failed {
		t.Errorf("judged %s: %+v", live.Verdict, r.trial.Figures())
	}
}
