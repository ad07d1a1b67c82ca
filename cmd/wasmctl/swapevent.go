package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host/kubeapi/events"
)

// swapResult is what came of a new module, for metrics.
type swapResult string

// The results of a swap.
const (
	swapDone       = swapResult("swapped")
	swapRolledBack = swapResult("rolled_back") // by a user
	swapRefused    = swapResult("refused")
	swapTakenBack  = swapResult("taken_back") // it failed its probation
	swapStuck      = swapResult("stuck")      // so it did, and there is none to go back to
	swapCanary     = swapResult("canary")     // it is tried on some objects
	swapPromoted   = swapResult("promoted")
	swapAborted    = swapResult(canaryAborted)
	swapFailed     = swapResult(canaryFailed)
	swapReplaced   = swapResult(canaryReplaced)
)

// swapEvents has the reason of the event that tells of a result, and whether it
// is a warning.
var swapEvents = map[swapResult]struct {
	reason  string
	warning bool
	text    string
}{
	swapDone:       {"ModuleSwapped", false, "is live"},
	swapRolledBack: {"ModuleRolledBack", false, "is live again"},
	swapRefused:    {"ModuleRefused", true, "was not swapped in"},
	swapTakenBack:  {"ModuleTakenBack", true, "was worse than the one before, which is live again"},
	swapStuck:      {"ModuleFailing", true, "is worse than the one before, which is not there any more"},
	swapCanary:     {"CanaryStarted", false, "is tried on some of the objects"},
	swapPromoted:   {"CanaryPromoted", false, "is live"},
	swapAborted:    {"CanaryEnded", false, "has no objects any more"},
	swapFailed:     {"CanaryFailed", true, "was worse than the live one, which has all objects again"},
	swapReplaced:   {"CanaryEnded", false, "has no objects any more"},
}

// tell says what came of a new module to whoever looks at the cluster, and to
// metrics.
func (s *session) tell(result swapResult, generation uint64, reason string) {
	if s.onSwap != nil {
		s.onSwap(s.name, string(result))
	}
	e, ok := swapEvents[result]
	if !ok {
		panic("BUG: swap: no event for result " + string(result))
	}
	kind := corev1.EventTypeNormal
	if e.warning {
		kind = corev1.EventTypeWarning
	}
	what := "module of controller " + s.name
	if generation > 0 {
		what = fmt.Sprintf("generation %d of the %s", generation, what)
	}
	s.api.Record(events.Event{
		Type: kind, Reason: e.reason, Action: swapAction(generation, reason), Note: fmt.Sprintf("%s %s: %s", what, e.text, reason), Regarding: s.place(),
	})
}

// swapAction is the action of an event. Kubernetes makes one of events that
// differ in their note only, and shows the first: each swap is one of its own.
func swapAction(generation uint64, reason string) string {
	if generation > 0 {
		return fmt.Sprintf("SwapGeneration%d", generation)
	}
	sum := sha256.Sum256([]byte(reason))
	return fmt.Sprintf("Swap%x", sum[:4])
}

// place is what events about the controller as a whole are about, where a user
// of kubectl would look: the Lease of the election, else the pod, else, outside
// of a cluster, the first namespace that is watched.
func (s *session) place() corev1.ObjectReference {
	leader := &s.process.opts.leader
	if leader.elect {
		return corev1.ObjectReference{
			APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: leader.leaseNamespace(), Name: s.leaseName(),
		}
	}
	if b, err := os.ReadFile(inClusterNamespace); err == nil && len(b) > 0 {
		if name, err := os.Hostname(); err == nil { // a pod's is its name
			return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: strings.TrimSpace(string(b)), Name: name}
		}
	}
	ns := namespaceOutside(s.kind.watch.Namespaces)
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: ns, Name: ns}
}

// namespaceOutside is the namespace of such events outside of a cluster.
func namespaceOutside(watched []string) string {
	if len(watched) > 0 {
		return watched[0]
	}
	return corev1.NamespaceDefault
}
