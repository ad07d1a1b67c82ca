// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
)

// Reasons of events that are not reasons of Ready.
const (
	reasonReleased = "Released"
	reasonLost     = "ReleasedWithoutCleanup"
)

// Reasons of Ready that are no events, because they are only steps on the way to another one, and those
// whose events are no warnings.
var (
	passing = []string{"Progressing", "CachesSyncing", "Loading", "Stopping"}
	normal  = []string{"Succeeded", stageShadow, "Canary", "Probation", "Suspended", reasonFinalizing, reasonReleasing}
)

// news returns the event that reports a status, and a text that differs if another status is worth
// another event. The text is empty if the status is not worth an event. news is pure.
func news(st *v1alpha1.Status) (e events.Event, text string) {
	ready := meta.FindStatusCondition(st.Conditions, v1alpha1.Ready)
	if ready == nil || slices.Contains(passing, ready.Reason) {
		return e, ""
	}
	e = events.Event{Type: corev1.EventTypeWarning, Reason: ready.Reason, Action: events.ActionOf("Reconcile", ready.Message), Note: ready.Message}
	if slices.Contains(normal, ready.Reason) {
		e.Type = corev1.EventTypeNormal
	}
	text = ready.Reason
	switch {
	case ready.Status == metav1.ConditionTrue, meta.IsStatusConditionTrue(st.Conditions, v1alpha1.Stalled):
		text += " " + ready.Message // it is about one module
	case st.Candidate != nil:
		text += " " + st.Candidate.Digest // the message has counts
	}
	return e, text
}

// announce records an event about a status, unless it has been announced.
func (u *unit) announce(o *reconciler, st *v1alpha1.Status) {
	e, text := news(st)
	if text == "" || text == u.announced {
		return
	}
	u.announced = text
	e.Regarding = o.reference()
	u.server.rt.Record(e)
}

// reference returns the object that events about a Reconciler refer to.
func (r *reconciler) reference() corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: r.kind, Namespace: r.meta.Namespace, Name: r.meta.Name, UID: r.meta.UID}
}
