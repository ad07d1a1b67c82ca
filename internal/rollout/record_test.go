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

// recordOf is the record of revision 2, which is on probation after 1.
func recordOf(digest string, cfg probation.Config) *record {
	r := &record{wake: make(chan struct{}, 1), counts: map[uint64]*runCounts{}, bad: map[string]string{}, proven: 1, window: probation.NewWindow()}
	r.trial = &trialRuns{Trial: probation.New(cfg, probation.Figures{}, time.Now()), number: 2, digest: digest, window: probation.NewWindow()}
	return r
}

// A revision of which no guest can be had any longer is worse: what its start
// code does counts.
func TestRecord_GuestsThatDoNotStartCount(t *testing.T) {
	r := recordOf("x", probation.Config{})
	for i := range 3 {
		r.end(&applier.Outcome{
			Key: abi.Key{Name: fmt.Sprint(i)}, Revision: 2, DecidedBy: applier.DecidedByBackoff, Failure: abi.FailureTrap,
			Err: fmt.Errorf("acquire an instance: %w", &abi.CallError{Kind: abi.FailureTrap, Err: errors.New("unreachable")}),
		})
	}
	if !r.Failing(time.Now()) {
		t.Errorf("not worse: %+v", r.trial.Figures())
	}
	if v, _ := r.judge(time.Now()); v != probation.Failed {
		t.Errorf("judged %s", v)
	}
}

// A module that was rolled back, was tried again and passed may be swapped in
// like any other.
func TestRecord_PassedIsForgiven(t *testing.T) {
	r := recordOf("x", probation.Config{Time: time.Nanosecond})
	r.fail("worse")
	if r.badReason("x") == "" {
		t.Fatal("it is not remembered")
	}
	r.Started(2, abi.Key{Name: "a"})
	r.end(&applier.Outcome{Key: abi.Key{Name: "a"}, Revision: 2})
	if v, _ := r.judge(time.Now().Add(time.Second)); v != probation.Passed || r.badReason("x") != "" {
		t.Errorf("%s, and its digest is refused: %q", v, r.badReason("x"))
	}
}
