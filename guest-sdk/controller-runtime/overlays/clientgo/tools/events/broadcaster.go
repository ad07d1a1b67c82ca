// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"

	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// EventSink stores events. In a module, the host stores them, and ignores the sink.
type EventSink any

// EventSinkImpl represents the sink that writes to the API server.
type EventSinkImpl struct{ Interface any }

// EventBroadcaster sends events to the host, to handlers, or to a log. It does
// so immediately, because a module does not run between two calls of the host.
type EventBroadcaster interface {
	// StartRecordingToSink makes the host record the events.
	StartRecordingToSink(stopCh <-chan struct{})
	// StartRecordingToSinkWithContext makes the host record the events.
	StartRecordingToSinkWithContext(ctx context.Context) error
	// NewRecorder returns a recorder. The host names the controller as the source.
	NewRecorder(scheme *runtime.Scheme, reportingController string) EventRecorderLogger
	// StartEventWatcher calls a function with each event.
	StartEventWatcher(eventHandler func(event runtime.Object)) (func(), error)
	// StartStructuredLogging logs each event.
	StartStructuredLogging(verbosity klog.Level) func()
	// StartLogging logs each event.
	StartLogging(logger klog.Logger) (func(), error)
	// Shutdown stops recording, handlers and logs.
	Shutdown()
}

// NewBroadcaster returns a broadcaster.
func NewBroadcaster(EventSink) EventBroadcaster { return &broadcaster{} }

type broadcaster struct {
	records  bool
	handlers []*func(runtime.Object)
}

// StartRecordingToSink implements EventBroadcaster.
func (b *broadcaster) StartRecordingToSink(<-chan struct{}) { b.records = true }

// StartRecordingToSinkWithContext implements EventBroadcaster.
func (b *broadcaster) StartRecordingToSinkWithContext(context.Context) error {
	b.records = true
	return nil
}

// StartEventWatcher implements EventBroadcaster.
func (b *broadcaster) StartEventWatcher(handler func(event runtime.Object)) (func(), error) {
	h := &handler
	b.handlers = append(b.handlers, h)
	return func() { *h = nil }, nil
}

// StartStructuredLogging implements EventBroadcaster.
func (b *broadcaster) StartStructuredLogging(verbosity klog.Level) func() {
	stop, _ := b.StartLogging(klog.Background().V(int(verbosity))) // it returns no error
	return stop
}

// StartLogging implements EventBroadcaster.
func (b *broadcaster) StartLogging(logger klog.Logger) (func(), error) {
	return b.StartEventWatcher(func(obj runtime.Object) {
		if e, ok := obj.(*eventsv1.Event); ok {
			logger.Info("Event occurred", "object", klog.KRef(e.Regarding.Namespace, e.Regarding.Name), "kind", e.Regarding.Kind, "type", e.Type, "reason", e.Reason, "action", e.Action, "note", e.Note)
		}
	})
}

// Shutdown implements EventBroadcaster.
func (b *broadcaster) Shutdown() { b.records, b.handlers = false, nil }

// NewRecorder implements EventBroadcaster.
func (b *broadcaster) NewRecorder(scheme *runtime.Scheme, reportingController string) EventRecorderLogger {
	_, host := recorder.OfHost(scheme)
	return &sender{b, scheme, reportingController, host}
}

// sender is a recorder of a broadcaster.
type sender struct {
	*broadcaster

	scheme *runtime.Scheme
	source string
	host   EventRecorder
}

// WithLogger implements EventRecorderLogger.
func (s *sender) WithLogger(klog.Logger) EventRecorderLogger { return s }

// AnnotatedEventf implements AnnotatedEventRecorder. It ignores the
// annotations, which events of the host do not have.
func (s *sender) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...any) {
	s.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// Eventf implements EventRecorder.
func (s *sender) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	note = fmt.Sprintf(note, args...)
	if s.records {
		s.host.Eventf(named(regarding), named(related), eventtype, reason, action, "%s", note)
	}
	for _, h := range s.handlers {
		if *h == nil {
			continue
		}
		e := &eventsv1.Event{
			EventTime: metav1.NowMicro(), ReportingController: s.source, Action: action, Reason: reason, Type: eventtype, Note: note,
			Regarding: s.refer(regarding),
		}
		e.Namespace = e.Regarding.Namespace
		(*h)(e)
	}
}

// refer returns a reference to an object. It is empty if the object cannot be
// referenced.
func (s *sender) refer(obj runtime.Object) corev1.ObjectReference {
	if ref, err := reference.GetReference(s.scheme, obj); err == nil {
		return *ref
	}
	return corev1.ObjectReference{}
}

// named returns an object with the name in a reference.
func named(obj runtime.Object) runtime.Object {
	ref, ok := obj.(*corev1.ObjectReference)
	if !ok {
		return obj
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
	}
}
