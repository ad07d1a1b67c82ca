// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

const (
	maxHistory = 5
	maxMessage = 4 << 10 // bytes of a condition's message
)

// problem is the reason why the spec is not fulfilled. It is an error.
type problem struct {
	condition       string // the condition that is False in addition to Ready; may be ""
	reason, message string
	stalled         bool // only a change of the spec or of its sources helps
	denied          bool // the service account lacks a right
	conceals        bool // it is the same for all hosts that are no registry
}

// Error implements error.
func (p *problem) Error() string { return p.message }

// seen is an observation of a unit: the input of a status.
type seen struct {
	generation int64
	requested  string
	suspended  bool
	problem    *problem            // nil if the last step succeeded
	wanted     *v1alpha1.Revision  // the module of the spec; nil if it is not known yet
	verified   bool                // the signature of the module was verified
	insecure   string              // the registry, if the module came without verified TLS
	controller *admin.Controller   // nil if there is none
	finalizer  *v1alpha1.Finalizer // of the module; nil if its account may not put it on objects
	mode       string
	shadow     *v1alpha1.Candidate // a module that shadows the live one; may be nil
	refused    *v1alpha1.Refused   // the refusal of the wanted module after its trial; may be nil
	audit      *v1alpha1.Audit     // nil unless the mode is audit
	auditing   bool                // audit has changed since the previous look
	count      bool                // the objects must be counted again
	shared     bool                // replicas share the work
	uncovered  string              // describes the slots without exactly one replica; "" if there are none
}

// state is the content of Ready, and which of Reconciling and Stalled is present.
type state struct {
	ready, reconciling, stalled bool
	reason, message             string
}

// next returns the status after an observation. It is pure.
func next(prev v1alpha1.Status, in *seen, now time.Time) v1alpha1.Status {
	st := prev
	st.Conditions, st.History = slices.Clone(prev.Conditions), slices.Clone(prev.History)
	st.ObservedGeneration, st.LastHandledReconcileAt = in.generation, in.requested
	st.Candidate, st.Audit = nil, in.audit
	if c := in.controller; c != nil && c.Phase == admin.PhaseRunning {
		st.For = c.Kind
		remember(&st, in.finalizer)
		modules(&st, in, now)
		count(&st, c, in)
	}
	s := judge(&st, in)
	conditions(&st, in, s, now)
	return st
}

// modules sets the live module, the candidate, the refused module and the history.
func modules(st *v1alpha1.Status, in *seen, now time.Time) {
	c := in.controller
	live := v1alpha1.Revision{Digest: c.Digest, Version: humanize.Digest(c.Digest), Generation: in.generation, Since: metav1.NewTime(now)}
	for _, r := range c.Revisions {
		switch r.State {
		case "loading", "canary", "probation":
			st.Candidate = &v1alpha1.Candidate{
				Digest: r.Digest, Version: version(in, r.Digest), Stage: strings.ToUpper(r.State[:1]) + r.State[1:], Since: metav1.NewTime(r.Since),
				Objects: r.Canary, Runs: rough(r.Runs), Failures: rough(r.Errors),
			}
		}
	}
	if st.Candidate == nil {
		st.Candidate = in.shadow
	}
	proven := func(r admin.Revision) bool { return r.State == "live" && r.Digest == c.Digest }
	if st.Live != nil && !slices.ContainsFunc(c.Revisions, proven) {
		live = *st.Live // until the other module has passed its probation, or is rolled back
	}
	st.Refused = refused(st.Refused, in)
	switch before := st.Live; {
	case before != nil && before.Digest == live.Digest:
	default:
		if before != nil {
			past := v1alpha1.Past{Digest: before.Digest, Version: before.Version, From: before.Since, To: metav1.NewTime(now), Reason: "Replaced"}
			if st.Refused != nil && st.Refused.Digest == before.Digest {
				past.Reason = st.Refused.Reason
			}
			st.History = slices.Insert(st.History, 0, past)[:min(len(st.History)+1, maxHistory)]
		}
		st.Live = &live
	}
	if w := in.wanted; w != nil && w.Digest == st.Live.Digest {
		live = *st.Live
		live.Image, live.Version = w.Image, w.Version
		st.Live, st.Refused = &live, nil
	}
}

// refused returns the refusal of the wanted module, if it does not run, or the previous refusal.
func refused(prev *v1alpha1.Refused, in *seen) *v1alpha1.Refused {
	switch r := in.refused; {
	case r != nil && prev != nil && prev.Digest == r.Digest && prev.Reason == r.Reason:
		return prev
	case r != nil:
		return r
	case in.wanted == nil:
		return prev
	case prev != nil && prev.Digest == in.wanted.Digest && prev.Reason == reasonDiffers:
		prev = nil // another attempt was requested
	}
	for _, r := range slices.Backward(in.controller.Revisions) {
		if r.Digest != in.wanted.Digest || r.Digest == in.controller.Digest {
			continue
		}
		reason := map[string]string{"failed": "RolledBack", "refused": "ModuleRefused", "aborted": "Aborted"}[r.State]
		if reason == "" {
			continue
		}
		at := r.Since
		if prev != nil && prev.Digest == r.Digest && prev.Reason == reason {
			at = prev.At.Time
		}
		return &v1alpha1.Refused{Digest: r.Digest, Reason: reason, Message: short(r.Reason), At: metav1.NewTime(at)}
	}
	return prev
}

// judge returns whether the spec is fulfilled, and if not, why.
func judge(st *v1alpha1.Status, in *seen) state {
	c := in.controller
	switch {
	case in.suspended:
		return state{reason: "Suspended", message: "spec.suspend is true"}
	case in.problem != nil:
		return state{reconciling: !in.problem.stalled, stalled: in.problem.stalled, reason: in.problem.reason, message: in.problem.message}
	case c == nil || c.Phase == admin.PhaseLoading:
		return state{reconciling: true, reason: "Progressing", message: "loading the module"}
	case c.Restarting: // the engine still has the options of an earlier generation
		return state{reconciling: true, reason: "Progressing", message: "restarting with the new options"}
	case c.Phase == admin.PhaseWaiting:
		return state{reconciling: true, reason: "WaitingForKind", message: c.Message}
	case c.Phase == admin.PhaseFailed:
		return state{reconciling: true, reason: "StartFailed", message: c.Message}
	}
	if r := st.Refused; r != nil && in.wanted != nil && r.Digest == in.wanted.Digest {
		return state{stalled: true, reason: r.Reason, message: fmt.Sprintf("%s: %s; the previous module keeps running", cmp.Or(in.wanted.Version, humanize.Digest(r.Digest)), r.Message)}
	}
	if k := st.Candidate; k != nil {
		return state{reconciling: true, reason: k.Stage, message: progress(k)}
	}
	if reason, message := unsynced(c.Watches); reason != "" {
		return state{reconciling: true, reason: reason, message: message}
	}
	if in.wanted == nil || st.Live == nil || in.wanted.Digest != st.Live.Digest {
		return state{reconciling: true, reason: "Progressing", message: "swapping the module"}
	}
	message := "serving " + cmp.Or(st.Live.Version, humanize.Digest(st.Live.Digest))
	if in.mode != "" && in.mode != "Enforce" {
		message += "; writes nothing: mode " + in.mode
	}
	return state{ready: true, reason: "Succeeded", message: message}
}

// progress describes the stage and the results of a candidate.
func progress(k *v1alpha1.Candidate) string {
	text := strings.ToLower(k.Stage) + " of " + k.Version
	if k.Objects != "" {
		text += ": " + strings.TrimPrefix(k.Objects, "canary: ")
	}
	if k.Stage == stageShadow {
		text += fmt.Sprintf(": compared %d runs, %d differ", k.Runs, k.Differences)
	}
	return text
}

// count updates the numbers of objects, unless they are recent. It waits until the watch has synced,
// because the cache is incomplete before.
func count(st *v1alpha1.Status, c *admin.Controller, in *seen) {
	if st.Objects != nil && !in.count || len(c.Watches) > 0 && c.Watches[0].Phase == "syncing" {
		return
	}
	o := &v1alpha1.Objects{Failing: int64(c.Failing), Quarantined: int64(c.Quarantined)}
	if len(c.Watches) > 0 {
		o.Watched = int64(c.Watches[0].Objects)
	}
	st.Objects = o
}

// version returns the tag of a module, or its short digest if the tag is unknown.
func version(in *seen, digest string) string {
	if in.wanted != nil && in.wanted.Digest == digest {
		return in.wanted.Version
	}
	return humanize.Digest(digest)
}

// rough rounds down to two digits, so that a status is not written for each run.
func rough(n uint64) int64 {
	unit := uint64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return int64(n / unit * unit) //nolint:gosec // runs
}
