// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/internal/life"
)

// results has the event for each result, and whether it is a warning.
var results = map[life.Result]struct {
	reason  string
	warning bool
	text    string
}{
	life.Swapped:          {"ModuleSwapped", false, "is live"},
	life.RolledBackByUser: {"ModuleRolledBackByUser", false, "is live again"},
	life.Refused:          {"ModuleRefused", true, "was not swapped in"},
	life.RolledBack:       {"ModuleRolledBack", true, "failed its probation and was rolled back"},
	life.Stuck:            {"ModuleFailing", true, "failed its probation; the previous module is no longer kept"},
	life.CanaryStarted:    {"CanaryStarted", false, "is running as a canary"},
	life.CanaryPromoted:   {"CanaryPromoted", false, "is live"},
	life.CanaryAborted:    {"CanaryEnded", false, "no longer has objects"},
	life.CanaryFailed:     {"CanaryFailed", true, "failed as a canary; the live module has all objects again"},
	life.CanaryReplaced:   {"CanaryEnded", false, "no longer has objects"},
}

// Event returns the Kubernetes event that reports a result of a controller.
func Event(r life.Result, controller string, revision uint64, reason string) events.Event {
	e, ok := results[r]
	if !ok {
		panic("BUG: rollout: no event for result " + string(r))
	}
	kind := corev1.EventTypeNormal
	if e.warning {
		kind = corev1.EventTypeWarning
	}
	what := "module of controller " + controller
	if revision > 0 {
		what = fmt.Sprintf("revision %d of the %s", revision, what)
	}
	return events.Event{Type: kind, Reason: e.reason, Action: action(revision, reason), Note: fmt.Sprintf("%s %s: %s", what, e.text, reason)}
}

// action returns the action of an event. Each swap has one of its own.
func action(revision uint64, reason string) string {
	if revision > 0 {
		return fmt.Sprintf("SwapRevision%d", revision)
	}
	return events.ActionOf("Swap", reason)
}
