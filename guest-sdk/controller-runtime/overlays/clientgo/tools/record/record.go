// SPDX-License-Identifier: Apache-2.0

// Package record has event recorders and broadcasters.
package record

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// EventRecorder records events about objects.
type EventRecorder interface {
	// Event records an event.
	Event(object runtime.Object, eventtype, reason, message string)
	// Eventf records an event with a formatted message.
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
	// AnnotatedEventf records an event that has annotations.
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

// EventRecorderLogger is an EventRecorder with the caller's logger.
type EventRecorderLogger interface {
	EventRecorder
	// WithLogger returns the same recorder for another logger.
	WithLogger(logger klog.Logger) EventRecorderLogger
}

// FakeRecorder writes events as text to a channel, for tests.
type FakeRecorder struct {
	// Events receives the events. If nil, they are discarded.
	Events chan string
	// IncludeObject adds the kind of the object.
	IncludeObject bool
}

// NewFakeRecorder returns a recorder with room for bufferSize events.
func NewFakeRecorder(bufferSize int) *FakeRecorder {
	return &FakeRecorder{Events: make(chan string, bufferSize)}
}

// Event implements EventRecorder.
func (f *FakeRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	f.write(object, nil, eventtype, reason, message)
}

// Eventf implements EventRecorder.
func (f *FakeRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	f.write(object, nil, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf implements EventRecorder.
func (f *FakeRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	f.write(object, annotations, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// WithLogger implements EventRecorderLogger.
func (f *FakeRecorder) WithLogger(klog.Logger) EventRecorderLogger { return f }

func (f *FakeRecorder) write(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	if f.Events == nil {
		return
	}
	text := eventtype + " " + reason + " " + message
	if f.IncludeObject {
		gvk := object.GetObjectKind().GroupVersionKind()
		text += fmt.Sprintf(" involvedObject{kind=%s,apiVersion=%s}", gvk.Kind, gvk.GroupVersion())
	}
	if len(annotations) > 0 {
		text += fmt.Sprint(annotations)
	}
	f.Events <- text
}
