// SPDX-License-Identifier: Apache-2.0

// Package life decides the life of one controller: when its module is loaded,
// retried, restarted and stopped, and which revision of the module is live, runs as
// a canary, or is rolled back.
//
// A Core has no clock, does no I/O and starts no goroutine. Its owner, the loop of
// package engine, passes in requests, timers and results as events, and carries out
// the effects that Step returns. All transitions are in one table (table.go), from
// which the diagram in docs/lifecycle.md is generated.
package life

import (
	"time"

	"github.com/wasmctl/wasmctl/internal/rollout/probation"
)

// Phase is the current phase of a controller.
type Phase string

// The phases.
const (
	Idle       Phase = "Idle"       // not loaded; the Runtime does not run yet
	Loaded     Phase = "Loaded"     // the Runtime does not run yet
	Loading    Phase = "Loading"    // the module is read, compiled and checked
	Waiting    Phase = "Waiting"    // loading waits for the API server or a kind
	Running    Phase = "Running"    // it reconciles
	Preparing  Phase = "Preparing"  // it reconciles, and another revision is prepared
	Cutting    Phase = "Cutting"    // a preparation ends, because a request goes first
	Promoting  Phase = "Promoting"  // another revision becomes live
	Restarting Phase = "Restarting" // it ends, and is loaded again
	Failed     Phase = "Failed"     // it could not be loaded, and is retried
	Stopping   Phase = "Stopping"   // it ends
	Stopped    Phase = "Stopped"    // everything that it started has ended
)

// Runs reports whether requests about modules are accepted in a phase.
func (p Phase) Runs() bool { return p == Running || p == Preparing || p == Cutting || p == Promoting }

// Kind is what happened.
type Kind string

// The kinds of events: first requests, which have an ID and are answered by Reply,
// then timers and the steps of a Runtime, then results of effects.
const (
	Want     Kind = "Want"     // Digest and options are wanted
	Swap     Kind = "Swap"     // make Digest live, on some objects first if Canary is set
	Rollback Kind = "Rollback" // make the revision Number live again; 0 is the previous one
	Promote  Kind = "Promote"  // give the canary all objects
	Abort    Kind = "Abort"    // end the canary
	Shadow   Kind = "Shadow"   // prepare a module that shadows the live one
	Follow   Kind = "Follow"   // do what other replicas have done
	Lead     Kind = "Lead"     // this replica leads from now on
	Task     Kind = "Task"     // run a function that must not run during a preparation

	Begin   Kind = "Begin"   // the Runtime runs
	Restart Kind = "Restart" // load again, with the options of the source
	Stop    Kind = "Stop"
	Retry   Kind = "Retry"  // the time of a back-off is over
	Tick    Kind = "Tick"   // revisions may be judged
	Resume  Kind = "Resume" // no result of an effect is outstanding

	Waits      Kind = "Waits"      // loading waits for something
	Tried      Kind = "Tried"      // Load has ended
	Ended      Kind = "Ended"      // Run has ended
	Closed     Kind = "Closed"     // Close has ended
	Configured Kind = "Configured" // Configure has ended
	Prepared   Kind = "Prepared"   // Prepare has ended
	Promoted   Kind = "Promoted"   // Activate has ended
	Judged     Kind = "Judged"     // Judge has ended
	Recalled   Kind = "Recalled"   // Recall has ended, for Follow
	Led        Kind = "Led"        // Recall has ended, for Lead
	Misfit     Kind = "Misfit"     // the canary refuses new settings
)

// request reports whether an event is answered by Reply.
func (k Kind) request() bool {
	switch k {
	case Want, Swap, Rollback, Promote, Abort, Shadow, Follow, Lead, Task:
		return true
	default:
		return false
	}
}

// replaces reports whether a request is about which module is live. A module that
// is still being prepared then is superseded.
func (k Kind) replaces() bool { return k == Want || k == Swap || k == Rollback || k == Follow }

// Outcome is the result of a request or an effect.
type Outcome string

// The outcomes.
const (
	OK         Outcome = "ok"
	Error      Outcome = "error"      // Err says why
	Same       Outcome = "same"       // the module is live, or the canary, already
	NotKept    Outcome = "not kept"   // the revision is no longer kept
	Bad        Outcome = "bad"        // the module was rolled back before: Reason
	Busy       Outcome = "busy"       // the module is being prepared already
	Superseded Outcome = "superseded" // by a request for another module
	NoCanary   Outcome = "no canary"
	NotRunning Outcome = "not running"
	Ending     Outcome = "ending" // the controller stops or restarts
)

// Verdict is the verdict on a revision.
type Verdict struct {
	probation.Verdict

	Reason string // of probation.Failed
}

// Event is something that happened. Which fields are set depends on Kind.
type Event struct {
	Kind   Kind
	Now    time.Time
	ID     uint64 // of a request
	Digest string // of a module
	Number uint64 // of a revision
	// Canary is which objects a module is tried on first, if not empty; after Tried, those of
	// the options.
	Canary  string
	Force   bool   // also a module that was rolled back
	Why     string // of a request, for people; after Waits, what loading waits for
	Outcome Outcome
	Err     error
	// OnTrial reports, after Promoted, whether the revision is on probation.
	OnTrial bool
	// Canaries and Lives are the verdicts on the canary and the live revision.
	Canaries, Lives Verdict
	// Failed are modules that were rolled back elsewhere or before, with the reasons.
	Failed map[string]string
	// Differs is, with Want, what differs from the options that were wanted before.
	Differs Difference
}

// Difference is the difference between two sets of options.
type Difference uint8

// The differences.
const (
	Nothing  Difference = iota
	Settings            // only the settings of the module
	Options             // anything else
)

// EffectKind is the kind of an Effect.
type EffectKind string

// The kinds of effects. Load, Run, Close and Prepare run in goroutines of their own; the
// others have ended when the loop goes on.
const (
	Load      EffectKind = "Load"      // load the module Digest, or the source's; Tried follows
	Cut       EffectKind = "Cut"       // end Load or Prepare early
	Run       EffectKind = "Run"       // reconcile; Ended follows
	Drain     EffectKind = "Drain"     // end Run
	Close     EffectKind = "Close"     // give up what was loaded; Closed follows
	Configure EffectKind = "Configure" // give the module the wanted settings; Configured follows
	Prepare   EffectKind = "Prepare"   // prepare the revision of Change; Prepared follows
	Discard   EffectKind = "Discard"   // give up what was prepared
	Canary    EffectKind = "Canary"    // run what was prepared on some objects
	EndCanary EffectKind = "EndCanary" // give the objects of the canary to the live revision
	Activate  EffectKind = "Activate"  // make what was prepared, or the canary, live; Promoted follows
	Judge     EffectKind = "Judge"     // judge canary and live revision; Judged follows
	Recall    EffectKind = "Recall"    // read what replicas share; Recalled follows
	Prove     EffectKind = "Prove"     // record that the live revision is the one to roll back to
	Fail      EffectKind = "Fail"      // record that the live revision did worse than its predecessor
	Bury      EffectKind = "Bury"      // end the revision Number, which was rolled back
	Stay      EffectKind = "Stay"      // go on with the live revision, which failed, because no other one is kept
	Report    EffectKind = "Report"    // report Result
	Do        EffectKind = "Do"        // run the task of a request
	Reply     EffectKind = "Reply"     // answer a request
)

// Effect is an action that the core asks its owner for.
type Effect struct {
	Kind    EffectKind
	ID      uint64
	Digest  string
	Number  uint64
	Change  Change
	Result  Result
	Reason  string
	Outcome Outcome
	Err     error
	// OnCanary reports, with Reply, whether the revision is a canary.
	OnCanary bool
}

// Result is the result of a change, for metrics and events.
type Result string

// The results of a change.
const (
	Swapped          Result = "swapped"
	RolledBackByUser Result = "rollback"
	Refused          Result = "refused"
	RolledBack       Result = "rolled_back" // it failed its probation
	Stuck            Result = "stuck"       // it failed its probation, and no revision is left to roll back to
	CanaryStarted    Result = "canary"
	CanaryPromoted   Result = "promoted"
	CanaryAborted    Result = "aborted"  // by a user
	CanaryFailed     Result = "failed"   // it does worse
	CanaryReplaced   Result = "replaced" // by another module
)

// Revision is a loaded version of the module.
type Revision struct {
	Number uint64
	Digest string
}

// Change is a change of the revision that is live.
type Change struct {
	ID     uint64 // of the request; 0 if there is none
	Kind   Kind   // Swap, Rollback, Promote, Shadow, Follow; Judged is a failed probation
	Digest string
	To     uint64 // the revision to go back to
	Canary string
	Force  bool
	Why    string // for people
}

// Urgent reports whether nothing may come before the change.
func (c *Change) Urgent() bool { return c.Kind == Judged }
