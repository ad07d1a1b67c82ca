// SPDX-License-Identifier: Apache-2.0

// Package recorder has the interface of the provider of event recorders.
package recorder

import (
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostevents"
)

// OfHost returns recorders whose events the host writes, for the broadcasters
// of client-go in a module.
func OfHost(scheme *runtime.Scheme) (ObjectRecorder, EventRecorder) {
	r := hostevents.New(scheme)
	return r.Recorder, r
}

// Provider makes recorders of Kubernetes events.
type Provider interface {
	// GetEventRecorderFor returns a recorder like record.EventRecorder of
	// client-go.
	GetEventRecorderFor(name string) ObjectRecorder
	// GetEventRecorder returns a recorder like events.EventRecorder of
	// client-go.
	GetEventRecorder(name string) EventRecorder
}

// ObjectRecorder has the methods of client-go's record.EventRecorder, and is
// assignable to it. It is a separate type because client-go's package would add
// its REST client to each module.
type ObjectRecorder interface {
	// Event records an event about an object.
	Event(object runtime.Object, eventtype, reason, message string)
	// Eventf is Event with a format.
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
	// AnnotatedEventf is Eventf; the annotations have no effect.
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

// EventRecorder has the methods of client-go's events.EventRecorder and
// events.AnnotatedEventRecorder, and is assignable to both.
type EventRecorder interface {
	// Eventf records an event about an object and a related one.
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
	// AnnotatedEventf is Eventf; the annotations have no effect.
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}
