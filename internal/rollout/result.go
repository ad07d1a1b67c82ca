package rollout

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host/kubeapi/events"
)

// Result is the result of a swap, for metrics.
type Result string

// The results of a swap.
const (
	Swapped          = Result("swapped")
	RolledBackByUser = Result("rollback") // by a user
	Refused          = Result("refused")
	RolledBack       = Result("rolled_back") // it failed its probation
	Stuck            = Result("stuck")       // so it did, and there is none to go back to
	CanaryStarted    = Result("canary")      // it is run as a canary
	Promoted         = Result("promoted")
	Aborted          = Result("aborted")  // a canary, by a user
	Failed           = Result("failed")   // a canary: it does worse
	Replaced         = Result("replaced") // a canary, by another module
)

// results has the event that reports each result, and whether it is a warning.
var results = map[Result]struct {
	reason  string
	warning bool
	text    string
}{
	Swapped:          {"ModuleSwapped", false, "is live"},
	RolledBackByUser: {"ModuleRolledBackByUser", false, "is live again"},
	Refused:          {"ModuleRefused", true, "was not swapped in"},
	RolledBack:       {"ModuleRolledBack", true, "failed its probation and was rolled back"},
	Stuck:            {"ModuleFailing", true, "failed its probation; the previous module is no longer kept"},
	CanaryStarted:    {"CanaryStarted", false, "is running as a canary"},
	Promoted:         {"CanaryPromoted", false, "is live"},
	Aborted:          {"CanaryEnded", false, "has no objects any longer"},
	Failed:           {"CanaryFailed", true, "failed as a canary; the live module has all objects again"},
	Replaced:         {"CanaryEnded", false, "has no objects any longer"},
}

// Event is the Kubernetes event that reports a result for a controller.
func (r Result) Event(controller string, revision uint64, reason string) events.Event {
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

// action is the action of an event. Kubernetes makes one of events that
// differ in their note only, and shows the first: each swap is one of its own.
func action(revision uint64, reason string) string {
	if revision > 0 {
		return fmt.Sprintf("SwapRevision%d", revision)
	}
	sum := sha256.Sum256([]byte(reason))
	return fmt.Sprintf("Swap%x", sum[:4])
}
