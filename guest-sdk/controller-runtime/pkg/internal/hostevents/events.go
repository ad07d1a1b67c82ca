// SPDX-License-Identifier: Apache-2.0

// Package hostevents records Kubernetes events through the host.
package hostevents

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// wanted is set once the program has made its own recorder.
var wanted atomic.Bool

// New returns recorders for a broadcaster of the program.
func New(scheme *runtime.Scheme) Actions {
	wanted.Store(true)
	return Actions{Recorder{Scheme: scheme}}
}

// Wanted reports whether a broadcaster of the program has recorders.
func Wanted() bool { return wanted.Load() }

// Recorder implements the EventRecorder of client-go's package record.
type Recorder struct{ Scheme *runtime.Scheme }

// Event records an event about an object.
func (r Recorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.record(object, nil, wasmctl.Event{Type: wasmctl.EventType(eventtype), Reason: reason, Note: message})
}

// Eventf is Event with a format.
func (r Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf is Eventf. It ignores the annotations, which events of the
// host do not have.
func (r Recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r.Eventf(object, eventtype, reason, messageFmt, args...)
}

// record passes an event to the host. As in client-go, a failure is only
// logged.
func (r Recorder) record(regarding, related runtime.Object, e wasmctl.Event) {
	c := run.Current(context.Background())
	if c == nil {
		logf.Log.Info("event not recorded: it was recorded outside of Reconcile", "reason", e.Reason)
		return
	}
	e.Regarding, e.Related = r.ref(regarding), r.ref(related)
	if err := c.RecordEvent(e); err != nil {
		logf.Log.Error(err, "event not recorded", "reason", e.Reason)
	}
}

// ref returns a reference to an object, or nil if the object cannot be
// identified.
func (r Recorder) ref(obj runtime.Object) *wasmctl.EventObject {
	if obj == nil {
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, r.Scheme)
	if err != nil {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return &wasmctl.EventObject{
		ObjectRef: wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()},
		UID:       string(m.GetUID()),
	}
}

// Actions implements the EventRecorder and AnnotatedEventRecorder of
// client-go's package events.
type Actions struct{ Recorder }

// Eventf records an event with an action.
func (r Actions) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.record(regarding, related, wasmctl.Event{
		Type: wasmctl.EventType(eventtype), Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
	})
}

// AnnotatedEventf is Eventf. It ignores the annotations, which events of the
// host do not have.
func (r Actions) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...any) {
	r.Eventf(regarding, related, eventtype, reason, action, note, args...)
}
