// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"

	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// EventSink stores events. In a module, the host stores them, and ignores the sink.
type EventSink interface {
	Create(event *corev1.Event) (*corev1.Event, error)
	Update(event *corev1.Event) (*corev1.Event, error)
	Patch(oldEvent *corev1.Event, data []byte) (*corev1.Event, error)
}

// EventBroadcaster sends events to the host, to handlers, or to a log. It does
// so immediately, because a module does not run between two calls of the host.
type EventBroadcaster interface {
	// StartEventWatcher calls a function with each event.
	StartEventWatcher(eventHandler func(*corev1.Event)) watch.Interface
	// StartRecordingToSink makes the host record the events.
	StartRecordingToSink(sink EventSink) watch.Interface
	// StartLogging logs each event.
	StartLogging(logf func(format string, args ...any)) watch.Interface
	// StartStructuredLogging logs each event.
	StartStructuredLogging(verbosity klog.Level) watch.Interface
	// NewRecorder returns a recorder. The host names the controller as the source.
	NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) EventRecorderLogger
	// Shutdown stops recording, handlers and logs.
	Shutdown()
}

// CorrelatorOptions have no effect, because the host aggregates similar events.
type CorrelatorOptions struct {
	LRUCacheSize         int
	BurstSize            int
	QPS                  float32
	KeyFunc              func(event *corev1.Event) (aggregateKey, localKey string)
	MessageFunc          func(event *corev1.Event) string
	MaxEvents            int
	MaxIntervalInSeconds int
	SpamKeyFunc          func(event *corev1.Event) string
}

// BroadcasterOption has no effect.
type BroadcasterOption func()

// WithCorrelatorOptions has no effect.
func WithCorrelatorOptions(CorrelatorOptions) BroadcasterOption { return func() {} }

// WithContext has no effect.
func WithContext(context.Context) BroadcasterOption { return func() {} }

// WithSleepDuration has no effect.
func WithSleepDuration(time.Duration) BroadcasterOption { return func() {} }

// NewBroadcaster returns a broadcaster.
func NewBroadcaster(...BroadcasterOption) EventBroadcaster { return &broadcaster{} }

// NewBroadcasterWithCorrelatorOptions returns a broadcaster.
func NewBroadcasterWithCorrelatorOptions(CorrelatorOptions) EventBroadcaster { return &broadcaster{} }

// NewBroadcasterForTests returns a broadcaster.
func NewBroadcasterForTests(time.Duration) EventBroadcaster { return &broadcaster{} }

type broadcaster struct{ to []*receiver }

// receiver receives events until it is stopped.
type receiver struct {
	host    bool // send the events to the host
	handle  func(*corev1.Event)
	stopped bool
}

// Stop implements watch.Interface.
func (r *receiver) Stop() { r.stopped = true }

// ResultChan implements watch.Interface. It returns nil, because there is no
// channel of events.
func (*receiver) ResultChan() <-chan watch.Event { return nil }

func (b *broadcaster) add(r *receiver) watch.Interface {
	b.to = append(b.to, r)
	return r
}

// StartEventWatcher implements EventBroadcaster.
func (b *broadcaster) StartEventWatcher(handler func(*corev1.Event)) watch.Interface {
	return b.add(&receiver{handle: handler})
}

// StartRecordingToSink implements EventBroadcaster.
func (b *broadcaster) StartRecordingToSink(EventSink) watch.Interface {
	return b.add(&receiver{host: true})
}

// StartLogging implements EventBroadcaster.
func (b *broadcaster) StartLogging(logf func(format string, args ...any)) watch.Interface {
	return b.StartEventWatcher(func(e *corev1.Event) {
		logf("Event(%#v): type: '%v' reason: '%v' %v", e.InvolvedObject, e.Type, e.Reason, e.Message)
	})
}

// StartStructuredLogging implements EventBroadcaster.
func (b *broadcaster) StartStructuredLogging(verbosity klog.Level) watch.Interface {
	return b.StartEventWatcher(func(e *corev1.Event) {
		o := &e.InvolvedObject
		klog.V(verbosity).InfoS("Event occurred", "object", klog.KRef(o.Namespace, o.Name), "kind", o.Kind, "apiVersion", o.APIVersion, "type", e.Type, "reason", e.Reason, "message", e.Message)
	})
}

// Shutdown implements EventBroadcaster.
func (b *broadcaster) Shutdown() { b.to = nil }

// NewRecorder implements EventBroadcaster.
func (b *broadcaster) NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) EventRecorderLogger {
	host, _ := recorder.OfHost(scheme)
	return &sender{b, scheme, source, host}
}

// sender is a recorder of a broadcaster.
type sender struct {
	*broadcaster

	scheme *runtime.Scheme
	source corev1.EventSource
	host   EventRecorder
}

// Event implements EventRecorder.
func (s *sender) Event(object runtime.Object, eventtype, reason, message string) {
	s.AnnotatedEventf(object, nil, eventtype, reason, "%s", message)
}

// Eventf implements EventRecorder.
func (s *sender) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	s.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// WithLogger implements EventRecorderLogger.
func (s *sender) WithLogger(klog.Logger) EventRecorderLogger { return s }

// AnnotatedEventf implements EventRecorder.
func (s *sender) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	message := fmt.Sprintf(messageFmt, args...)
	for _, r := range s.to {
		switch {
		case r.stopped:
		case r.host:
			s.host.Event(named(object), eventtype, reason, message)
		default:
			r.handle(s.event(object, annotations, eventtype, reason, message))
		}
	}
}

// named returns an object with the name in a reference.
func named(object runtime.Object) runtime.Object {
	ref, ok := object.(*corev1.ObjectReference)
	if !ok {
		return object
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
	}
}

// event returns the event for handlers.
func (s *sender) event(object runtime.Object, annotations map[string]string, eventtype, reason, message string) *corev1.Event {
	now := metav1.Now()
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Type: eventtype, Reason: reason, Message: message,
		Source: s.source, ReportingController: s.source.Component, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if ref, err := reference.GetReference(s.scheme, object); err == nil {
		e.InvolvedObject = *ref
		e.Namespace = ref.Namespace
		if e.Namespace == "" {
			e.Namespace = metav1.NamespaceDefault
		}
		e.Name = fmt.Sprintf("%s.%x", ref.Name, now.UnixNano())
	}
	return e
}
