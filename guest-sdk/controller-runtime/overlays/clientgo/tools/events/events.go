// SPDX-License-Identifier: Apache-2.0

// Package events has the recorders and broadcasters of the newer events API.
package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// EventRecorder records events about objects.
type EventRecorder interface {
	// Eventf records an event about regarding, and about related if it is not nil.
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// AnnotatedEventRecorder records events with annotations.
type AnnotatedEventRecorder interface {
	// AnnotatedEventf is Eventf with annotations of the event.
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
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
}

// NewFakeRecorder returns a recorder with room for bufferSize events.
func NewFakeRecorder(bufferSize int) *FakeRecorder {
	return &FakeRecorder{Events: make(chan string, bufferSize)}
}

// Eventf implements EventRecorder.
func (f *FakeRecorder) Eventf(_, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	if f.Events != nil {
		f.Events <- eventtype + " " + reason + " " + fmt.Sprintf(note, args...)
	}
}

// AnnotatedEventf implements AnnotatedEventRecorder.
func (f *FakeRecorder) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...any) {
	f.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// WithLogger implements EventRecorderLogger.
func (f *FakeRecorder) WithLogger(klog.Logger) EventRecorderLogger { return f }
