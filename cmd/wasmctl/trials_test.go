package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/probation"
)

// onTrialOf is what knows of generation 2, which is on probation after 1.
func onTrialOf(digest string, cfg probation.Config) *trials {
	t := &trials{wake: make(chan struct{}, 1), counts: map[uint64]*runCounts{}, bad: map[string]string{}, proven: 1, window: probation.NewWindow()}
	t.trial = &trialRuns{Trial: probation.New(cfg, probation.Figures{}, time.Now()), number: 2, digest: digest, window: probation.NewWindow()}
	return t
}

// A generation of which no guest can be had any more is worse: what its start
// code does counts.
func TestTrials_GuestsThatDoNotStartCount(t *testing.T) {
	trials := onTrialOf("x", probation.Config{})
	for i := range 3 {
		trials.end(&applier.Outcome{
			Key: abi.Key{Name: fmt.Sprint(i)}, Generation: 2, DecidedBy: applier.DecidedByBackoff,
			Err: fmt.Errorf("acquire a guest: %w", &abi.CallError{Kind: abi.FailureTrap, Err: errors.New("unreachable")}),
		})
	}
	if !trials.failing(time.Now()) {
		t.Errorf("not worse: %+v", trials.trial.Figures())
	}
	if v, _ := trials.judge(time.Now()); v != probation.Failed {
		t.Errorf("judged %s", v)
	}
}

// A module that was taken back, was tried again and passed may be swapped in like
// any other.
func TestTrials_PassedIsForgiven(t *testing.T) {
	trials := onTrialOf("x", probation.Config{Time: time.Nanosecond})
	trials.fail("worse")
	if trials.badReason("x") == "" {
		t.Fatal("it is not remembered")
	}
	if v, _ := trials.judge(time.Now().Add(time.Second)); v != probation.Passed || trials.badReason("x") != "" {
		t.Errorf("%s, and its digest is refused: %q", v, trials.badReason("x"))
	}
}
